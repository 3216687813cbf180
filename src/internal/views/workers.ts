/** The workers view: worker contexts, split by whether they carry a task. Read-only; it never assigns. */

import * as z from 'zod'
import { betweenSlices } from '../async/turns.js'
import { Completeness } from '../contract/capabilities.js'
import type { ClientType } from '../contract/connections.js'
import { ContextAnswer, type ContextRegistryInspector } from '../contract/contexts.js'
import { idField } from '../contract/ids.js'
import { type InspectionContext, omittedCount, type Page, type PageQuery } from '../contract/page.js'
import { answerFrom, budgetOf, parseRecords, readPage, type ViewContext, walkEntries } from './reading.js'

const WorkerCount = z.int().min(0)

/** How many worker contexts a user has: idle, assigned to a task, and the rest. */
export const WorkerCounts = z
  .object({
    user_id: idField('user_id'),
    idle_count: WorkerCount.describe('Workers that are idle and carry no task.'),
    assigned_count: WorkerCount.describe('Workers that carry a task and are not closed.'),
    other_count: WorkerCount.describe('Other workers: busy without a task, stale or closed.'),
    completeness: Completeness.describe('What this response may be missing.'),
  })
  .describe('Number of worker contexts of a user.')
export type WorkerCounts = z.infer<typeof WorkerCounts>

/** The worker contexts of a user, each list up to the limit; the counts cover all that was examined. */
export const Workers = WorkerCounts.extend({
  idle: z.array(ContextAnswer).describe('Idle ones, up to `limit`.'),
  assigned: z.array(ContextAnswer).describe('Assigned ones, up to `limit`.'),
}).describe('The worker contexts of a user, each list up to the limit; the counts cover all that was examined.')
export type Workers = z.infer<typeof Workers>

/** Assigned: carries a task and is not closed. Idle: carries none and is idle. */
export function workerState(context: ContextAnswer): keyof ByState {
  if (context.task_id !== null) return context.status === 'closed' ? 'other' : 'assigned'
  return context.status === 'idle' ? 'idle' : 'other'
}

const SOURCE = 'context_registry'

type ByState = Record<'idle' | 'assigned' | 'other', ContextAnswer[]>

type WorkerFilter = { user_id: string; client_type?: ClientType | undefined }

const ofWorkers = (filter: WorkerFilter) => ({ ...filter, ownership: 'worker' as const })

/** Whether a context that an inspector returned is a worker of the user: it may ignore its filter. */
const isWorkerOf = (filter: WorkerFilter, { ownership, user_id }: ContextAnswer) =>
  ownership === 'worker' && user_id === filter.user_id

/** The worker contexts of one user, with at most `limit` in each list; the counts cover all that was examined. */
export async function listWorkers(
  contexts: ContextRegistryInspector,
  filter: WorkerFilter,
  limit: number,
  view: ViewContext,
): Promise<Workers> {
  const reading = await readWorkers(contexts, filter, view)
  const isTruncated = ({ idle, assigned }: ByState) => idle.length > limit || assigned.length > limit
  const { value, completeness } = answerFrom(reading, view, isTruncated)
  const { idle, assigned, other } = value
  return {
    user_id: filter.user_id,
    idle: idle.slice(0, limit),
    assigned: assigned.slice(0, limit),
    idle_count: idle.length,
    assigned_count: assigned.length,
    other_count: other.length,
    completeness,
  }
}

/** The counts of `listWorkers` alone. */
export async function countWorkers(
  contexts: ContextRegistryInspector,
  filter: WorkerFilter,
  view: ViewContext,
): Promise<WorkerCounts> {
  return listWorkers(contexts, filter, Number.POSITIVE_INFINITY, view)
}

function readWorkers(contexts: ContextRegistryInspector, filter: WorkerFilter, view: ViewContext) {
  const list = (page: PageQuery, ctx: InspectionContext) => contexts.listContexts(ofWorkers(filter), page, ctx)
  const none: ByState = { idle: [], assigned: [], other: [] }
  return walkEntries(SOURCE, { entry: ContextAnswer, id: 'context_id', list }, view, none, (found, page) => {
    for (const context of page) if (isWorkerOf(filter, context)) found[workerState(context)].push(context)
  })
}

/**
 * One page of the worker contexts that `accept`s, in the registry's order. Pages of others are passed over within the
 * bound on examined entries, so an empty page with `has_more` is possible.
 */
export async function pageWorkers(
  contexts: ContextRegistryInspector,
  filter: WorkerFilter,
  page: PageQuery,
  view: ViewContext,
  accept: (context: ContextAnswer) => boolean,
): Promise<Page<ContextAnswer>> {
  const list = (query: PageQuery, ctx: InspectionContext) => contexts.listContexts(ofWorkers(filter), query, ctx)
  const budget = budgetOf(view)
  let cursor = page.cursor
  let omitted = 0
  while (true) {
    const listed: Page<unknown> = await readPage(list, cursor, page.limit, budget, view)
    const contexts = parseRecords(SOURCE, ContextAnswer, listed, view)
    // Invalid records must not count as contexts of another user.
    omitted += (listed.omitted ?? 0) + listed.items.length - contexts.length
    const items = contexts.filter((context) => isWorkerOf(filter, context) && accept(context))
    const isSpent = budget.entries <= 0 || budget.pages <= 0 || listed.next_cursor === cursor
    if (items.length > 0 || !listed.has_more || isSpent) {
      const { next_cursor, has_more } = listed
      return { items, next_cursor, has_more, ...omittedCount(omitted) }
    }
    cursor = listed.next_cursor
    await betweenSlices(view.ctx)
  }
}
