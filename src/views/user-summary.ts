/** The user summary: everything that all sources together know of one user. */
import * as z from 'zod'
import { requireRequested } from '../contract/bad-record.js'
import { WindowStatus } from '../contract/browser-windows.js'
import { Completeness } from '../contract/capabilities.js'
import { ContextStatus } from '../contract/contexts.js'
import { DeduplicatorUserSummary } from '../contract/deduplicator.js'
import type { Inspectors } from '../contract/families.js'
import type { UserPart } from '../contract/observation.js'
import { countsBy } from './counts.js'
import { completenessOf, examinedOf, readOnce, type ViewContext, viewForSource } from './reading.js'
import {
  countOf,
  namesOf,
  ObservedCount,
  observe,
  partsOf,
  readUsers,
  UserObservation,
  userSources,
} from './user-observation.js'

/** One user in full. */
export const UserSummary = UserObservation.extend({
  observed_client_ids: z.array(z.string()).describe('Clients of the user that any source knows.'),
  contexts_by_status: countsBy(ContextStatus)
    .nullable()
    .describe('All contexts by status, closed and stale ones too; `null` if they are not counted.'),
  browser_windows_by_status: countsBy(WindowStatus)
    .nullable()
    .describe('All browser windows by status, closed and stale ones too; `null` if they are not counted.'),
  observed_streams: ObservedCount.describe('Streams that retain messages.'),
  pending_rpc: ObservedCount.describe('Calls that wait for their reply.'),
  deduplicator: DeduplicatorUserSummary.nullable().describe("The user's part of the deduplicator; `null` for none."),
  completeness: Completeness.describe('What this response may be missing.'),
}).describe('What all sources together know of one user.')
export type UserSummary = z.infer<typeof UserSummary>

/** Everything known of one user, or `null` when no source knows the user and every one was fully examined. */
export async function summarizeUser(
  inspectors: Inspectors,
  userId: string,
  view: ViewContext,
): Promise<UserSummary | null> {
  const [readings, counted] = await Promise.all([
    Promise.all(userSources(inspectors).map((source) => readUsers(source, [userId], viewForSource(view, source.name)))),
    readDeduplicator(inspectors, userId, view),
  ])
  const parts = partsOf(userId, readings)
  const { user, cut } = observe(userId, parts)
  const clients = namesOf('observed_client_ids', parts)
  const completeness = completenessOf([...readings, ...counted], view, [...cut, ...clients.cut])
  const deduplicator = counted[0]?.value ?? null
  const sources = deduplicator ? [...user.sources, 'deduplicator'] : user.sources
  if (sources.length === 0 && completeness.complete) return null
  return {
    ...user,
    sources,
    observed_client_ids: clients.names,
    contexts_by_status: countsOf(ContextStatus, 'contexts_by_status', parts.get('context_registry')),
    browser_windows_by_status: countsOf(
      WindowStatus,
      'browser_windows_by_status',
      parts.get('browser_window_registry'),
    ),
    observed_streams: countOf('observed_streams', parts.get('history')),
    pending_rpc: countOf('pending_rpc', parts.get('rpc')),
    deduplicator,
    completeness,
  }
}

/** None where the deduplicator keeps no summary of users. */
async function readDeduplicator({ deduplicator }: Inspectors, userId: string, view: ViewContext) {
  const { userSummary } = deduplicator ?? {}
  if (!userSummary) return []
  const source = 'deduplicator'
  const read = async () => {
    const summary = await userSummary.call(deduplicator, userId, view.ctx)
    requireRequested(summary, { user_id: userId })
    return summary
  }
  // Kept numbers: the source examined nothing unless it reports otherwise.
  const reading = await readOnce(source, read, view, (summary) => examinedOf(summary, 0))
  return [reading ?? ({ source, examined: 0, truncated: false, value: null } as const)]
}

/** Counts with every enum value present, or `null` where the source is absent or failed. */
function countsOf<Status extends string>(
  statuses: z.ZodEnum<Record<Status, Status>>,
  field: 'contexts_by_status' | 'browser_windows_by_status',
  part: UserPart | null | undefined,
): Record<Status, number> | null {
  const counts = part === null ? {} : part?.[field]
  if (!counts) return null
  return Object.fromEntries(statuses.options.map((status) => [status, counts[status] ?? 0])) as Record<Status, number>
}
