/** The user summary: everything that all sources together know of one user. */
import * as z from 'zod'
import { WindowStatus } from '../contract/browser-windows.js'
import { Completeness, type SourceName } from '../contract/completeness.js'
import { ContextStatus } from '../contract/contexts.js'
import { DeduplicatorUserSummary } from '../contract/deduplicator.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { Examined } from '../contract/page.js'
import { countsBy } from './counts.js'
import {
  type Finding,
  isUnknownUser,
  numberOf,
  ObservedCount,
  observe,
  observedList,
  toObservation,
  UserObservation,
} from './findings.js'
import { completenessOf, examinedOf, failed, type Reading, readOnce, type ViewAsk } from './reading.js'
import { userSources } from './sightings.js'

/** One user in full. */
export const UserSummary = UserObservation.extend({
  observed_client_ids: z.array(z.string()),
  contexts_by_status: countsBy(ContextStatus).nullable(),
  browser_windows_by_status: countsBy(WindowStatus).nullable(),
  observed_streams: ObservedCount,
  pending_rpc: ObservedCount,
  deduplicator: DeduplicatorUserSummary.nullable(),
  completeness: Completeness,
})
export type UserSummary = z.infer<typeof UserSummary>

/** Everything known of one user, or `null` when no source knows the user and every one was fully examined. */
export async function summarizeUser(
  inspectors: Inspectors,
  userId: string,
  view: ViewAsk,
): Promise<UserSummary | null> {
  const { deduplicator } = inspectors
  const [findings, seen] = await Promise.all([
    Promise.all(userSources(inspectors).map((source) => observe(source, [userId], view))),
    deduplicator?.userSummary
      ? readOnce('deduplicator', async () => checkSummary(await deduplicator.userSummary?.(userId, view.ask)), view)
      : undefined,
  ])
  const dedup = seen && 'value' in seen ? seen.value : null
  const observation = toObservation(userId, findings)
  const readings = findings.map((finding) => finding.reading)
  if (seen) readings.push('error' in seen ? failed('deduplicator', seen.error) : dedupReading(dedup))
  const observed_client_ids = observedList('observed_client_ids', userId, findings)
  const completeness = completenessOf(readings, view)
  if (dedup) observation.sources.push('deduplicator')
  if (observation.sources.length === 0 && completeness.complete) return null
  return {
    ...observation,
    observed_client_ids,
    contexts_by_status: byStatus(ContextStatus, 'contexts_by_status', 'context_registry', userId, findings),
    browser_windows_by_status: byStatus(
      WindowStatus,
      'browser_windows_by_status',
      'browser_window_registry',
      userId,
      findings,
    ),
    observed_streams: numberOf('observed_streams', 'history', userId, findings),
    pending_rpc: numberOf('pending_rpc', 'rpc', userId, findings),
    deduplicator: dedup,
    completeness,
  }
}

type Summary = (DeduplicatorUserSummary & Examined) | null

function checkSummary(summary: Summary | undefined): Summary {
  if (summary === undefined) throw new TypeError('userSummary answered nothing')
  return summary
}

// Its numbers are kept, so that it looks at nothing unless it says so.
const dedupReading = (summary: Examined | null): Reading => ({
  source: 'deduplicator',
  examined: summary ? examinedOf(summary, 0) : 0,
  truncated: false,
  failed: false,
})

/** Counts with every enum value present, or `null` where the source is absent or failed. */
function byStatus<Status extends string>(
  statuses: z.ZodEnum<Record<Status, Status>>,
  field: 'contexts_by_status' | 'browser_windows_by_status',
  source: SourceName,
  userId: string,
  findings: readonly Finding[],
): Record<Status, number> | null {
  const finding = findings.find((candidate) => candidate.reading.source === source)
  const counts = isUnknownUser(userId, finding) ? {} : finding?.parts?.get(userId)?.[field]
  if (!counts) return null
  return Object.fromEntries(statuses.options.map((status) => [status, counts[status] ?? 0])) as Record<Status, number>
}
