/** Queues as scopes of admission, and all of them together. */
import { type DeliverySummary, type DeliveryTenant, NO_LEGACY } from '../contract/delivery.js'
import { AGE_SAMPLE } from '../contract/delivery-rules.js'
import { toTimestamp } from '../contract/ids.js'
import type { Ask, Page, PageQuery } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import type { Link } from './queue.js'
import { COUNTS, INDEXES, type Index, READ_COUNTS } from './scripts.js'

/** Where jobs stand that have not ended. */
const TRACKED = INDEXES.filter((index) => index !== 'completed' && index !== 'failed')

/** What BullMQ calls the indexes where it counts jobs. */
const nameOf = (index: Index) => (index === 'wait' ? 'waiting' : index)

/** What one queue counts, of one instant. */
interface QueueCounts {
  readonly jobs: Readonly<Record<Index, number>>
  readonly tracked: number
  readonly due: number
  readonly settings: Readonly<Record<(typeof COUNTS)[number], string | null>>
  /** When the sampled jobs that have not ended were added, in epoch ms. */
  readonly sampled: readonly number[]
}

async function readCounts(link: Link, sample: number, now: number, ask: Ask): Promise<QueueCounts> {
  // The score of a delayed job is its instant with 12 bits behind it.
  const due_below = (now + 1) * 0x1000
  const reply = await link.run(READ_COUNTS, { due_below, sample, indexes: TRACKED }, ask)
  const [lengths, delayedDue, given, instants]: unknown[] = Array.isArray(reply) ? reply : []
  if (!Array.isArray(lengths) || !Array.isArray(given) || !Array.isArray(instants))
    throw new TypeError('the store of a queue answered what are no counts')
  const jobs = Object.fromEntries(INDEXES.map((index, i) => [index, Number(lengths[i])])) as Record<Index, number>
  const settings = Object.fromEntries(COUNTS.map((name, i) => [name, given[i] ?? null])) as QueueCounts['settings']
  return {
    jobs,
    tracked: TRACKED.reduce((sum, index) => sum + jobs[index], 0),
    // Of a queue that is paused nothing is handed out.
    due: settings.paused === null ? jobs.wait + jobs.prioritized + Number(delayedDue) : 0,
    settings,
    sampled: instants.map(Number).filter(Number.isFinite),
  }
}

const numberOf = (text: string | null): number | null => (text === null ? null : Number(text))

function toTenant(scope_id: string, { jobs, tracked, settings }: QueueCounts): DeliveryTenant {
  const { paused, concurrency, max, duration, completed_total, failed_total } = settings
  const states = Object.fromEntries(INDEXES.map((index) => [nameOf(index), jobs[index]]))
  return {
    scope_id,
    reserved_commands: tracked,
    oldest_deadline_at: null,
    capacity: null,
    metadata: {
      paused: paused !== null,
      jobs: states,
      concurrency: numberOf(concurrency),
      rate_limit: max !== null && duration !== null ? { max: Number(max), duration_ms: Number(duration) } : null,
      totals: { completed: numberOf(completed_total), failed: numberOf(failed_total) },
    },
  }
}

/** Delivery over all queues. */
export async function readSummary(
  links: readonly Link[],
  deployment_id: string | null,
  ask: Ask,
  now: () => number,
): Promise<DeliverySummary> {
  const at = now()
  const sample = Math.max(1, Math.floor(AGE_SAMPLE / (TRACKED.length * links.length)))
  const counts = await Promise.all(links.map((link) => readCounts(link, sample, at, ask)))
  const sampled = counts.flatMap((count) => count.sampled)
  const sum = (of: (count: QueueCounts) => number) => counts.reduce((total, count) => total + of(count), 0)
  return {
    deployment_id,
    mode: 'shared_store',
    tracked_commands: sum(({ tracked }) => tracked),
    // A queue does not count its delayed jobs by whether one was attempted.
    tracked_by_state: null,
    due_commands: sum(({ due }) => due),
    // A queue does not say which workers wait for its jobs.
    waiting_for_client: null,
    oldest_deadline_at: null,
    oldest_queued_age_ms: sampled.length === 0 ? null : Math.max(0, at - Math.min(...sampled)),
    sample_size: sampled.length,
    ...NO_LEGACY,
    observed_at: toTimestamp(at),
  }
}

export async function readScope(
  links: readonly Link[],
  scopeId: string,
  ask: Ask,
  now: () => number,
): Promise<DeliveryTenant | null> {
  const link = links.find(({ name }) => name === scopeId)
  return link ? toTenant(scopeId, await readCounts(link, 0, now(), ask)) : null
}

/** The queues in the order in which they were given. The token is the name of the last one shown. */
export async function listScopes(
  links: readonly Link[],
  { limit, cursor }: PageQuery,
  ask: Ask,
  now: () => number,
): Promise<Page<DeliveryTenant>> {
  const shown = cursor === null ? -1 : links.findIndex(({ name }) => name === cursor)
  if (cursor !== null && shown < 0) throw new Refusal('invalid_cursor')
  const page = links.slice(shown + 1, shown + 1 + limit)
  const items = await Promise.all(page.map(async (link) => toTenant(link.name, await readCounts(link, 0, now(), ask))))
  const has_more = shown + 1 + limit < links.length
  return { items, next_cursor: has_more ? (page.at(-1)?.name ?? null) : null, has_more, examined: items.length }
}
