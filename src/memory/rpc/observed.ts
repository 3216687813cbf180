/** Observed calls in the memory of one process: those that are open or ended badly, and counts of all. */
import type { Clock } from '../../internal/async/timer.js'
import { createActionCounts } from '../../internal/contract/call-counts.js'
import { LATENCY_BOUNDS_MS } from '../../internal/contract/latency.js'
import type { ObserveCallsInput, ObservedCalls } from '../../internal/contract/rpc.js'
import type { Call, Calls } from './calls.js'

/** Maximum number of followers whose last report is remembered. */
const OBSERVERS_MAX = 100

export type ObservedTotals = ReturnType<typeof createObservedTotals>

/** Counts of all observed calls. */
export function createObservedTotals() {
  const actions = createActionCounts()
  let evicted = 0
  let unrecorded = 0
  let reports = 0
  /** Numbers of the last reports, by follower; of the newest followers. */
  const sequences = new Map<string, number>()
  return {
    reports: () => reports,
    /** Returns whether a report has not come before. */
    isNew({ observer, sequence }: ObserveCallsInput): boolean {
      const last = sequences.get(observer) ?? 0
      sequences.delete(observer)
      sequences.set(observer, Math.max(last, sequence))
      if (sequences.size > OBSERVERS_MAX) sequences.delete(sequences.keys().next().value as string)
      return sequence > last
    },
    add(report: ObserveCallsInput): void {
      if (report.actions.length === 0 && report.evicted + report.unrecorded === 0) return
      reports++
      for (const action of report.actions) actions.add(action)
      evicted += report.evicted
      unrecorded += report.unrecorded
    },
    read: (): ObservedCalls | null =>
      reports === 0 ? null : { bounds_ms: [...LATENCY_BOUNDS_MS], actions: actions.list(), evicted, unrecorded },
  }
}

const nothing = () => {}
/** Nothing waits for an observed call, and it has no deadline. */
const NO_WAITING = { endsAt: Number.POSITIVE_INFINITY, resolve: nothing, reject: nothing, release: nothing }

interface Bounds {
  readonly pending: number
  readonly perUser: number
}

/** Records the calls of a report. Returns the number of open ones that had no room. */
export function recordObserved(
  calls: Calls,
  { now, steady }: Clock,
  given: ObserveCallsInput['calls'],
  bounds: Bounds,
) {
  const { table } = calls
  let refused = 0
  for (const { age_ms, end, ...fields } of given) {
    const entry = table.get(fields.correlation_id)
    if (entry && !entry.record.observed) continue
    const call: Call = { ...fields, observed: true, startedAt: now() - age_ms, timeoutMs: null }
    if (end) {
      const how = { ...end, at: now() - end.ago_ms }
      if (entry) calls.end(entry, end.outcome, how)
      else calls.addEnded(call, how)
    } else if (entry) {
      const { answered_since } = fields
      if (entry.record.answered_since !== answered_since) table.replace(entry, { ...entry.record, answered_since })
      calls.renew(entry)
    } else if (table.size >= bounds.pending || table.sizeOf('user_id', fields.user_id) >= bounds.perUser) refused++
    else {
      const added = calls.add(call, NO_WAITING)
      added.touchedAt = steady() - age_ms
      calls.renew(added)
    }
  }
  return refused
}
