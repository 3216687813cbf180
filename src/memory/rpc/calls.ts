/** The pending calls of one process, by arrival and by deadline, and counts of how all others ended. */
import type { Clock } from '../../internal/async/timer.js'
import { toTimestamp, traceFields } from '../../internal/contract/ids.js'
import type { Page, PageQuery } from '../../internal/contract/page.js'
import {
  type CallCounters,
  type CallOutcomeName,
  ENDED_CALL_KEPT_MS,
  ENDED_CALLS_MAX,
  ENDED_CALLS_PER_USER_MAX,
  type EndedCall,
  type EndedCallFilter,
  OBSERVED_LEASE_MS,
  type PendingCall,
} from '../../internal/contract/rpc.js'
import { FairShare, type Place } from '../../internal/fair-share/fair-share.js'
import { Refusal } from '../../internal/refusal.js'
import { createListing, type Sequenced } from '../table/listing.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'
import { createVersion } from '../table/version.js'

// The newest ended calls of one process, bounded in number, per user and in age.

/** What is stored of a call. Times are epoch ms: their texts are made when they are read. */
export interface Call
  extends Pick<
    PendingCall,
    'correlation_id' | 'action' | 'user_id' | 'client_id' | 'instance_id' | 'direction' | 'observed' | 'answered_since'
  > {
  readonly startedAt: number
  /** `null` for an observed call. */
  readonly timeoutMs: number | null
  readonly trace?: string | undefined
}

/** Returns the fields that the records of a pending and of an ended call share, except times. */
export const shownCall = (call: Call) => {
  const { correlation_id, action, user_id, client_id, instance_id, direction, observed, trace } = call
  return { correlation_id, action, user_id, client_id, instance_id, direction, observed, ...traceFields(trace) }
}

/** How a call ended, if not just now. */
export interface CallEnd {
  readonly outcome: CallOutcomeName
  /** Epoch ms. @default now */
  readonly at?: number
  readonly connection_reason?: string | null
}

/** An ended call. Its record is made when it is first read: most are never read. */
interface End extends Sequenced {
  readonly call: Call
  readonly how: CallEnd
  /** Epoch ms. */
  readonly at: number
  /** When it is deleted, by the steady clock. */
  readonly keptUntil: number
  place: Place<End> | undefined
  record: EndedCall | undefined
}

function recordOf(end: End): EndedCall {
  const { how, at, call } = end
  const { startedAt } = call
  const duration_ms = Math.max(0, at - startedAt)
  end.record ??= Object.freeze({
    ...shownCall(call),
    outcome: how.outcome,
    started_at: toTimestamp(startedAt),
    ended_at: toTimestamp(at),
    duration_ms,
    ...(call.observed && { connection_reason: how.connection_reason ?? null }),
  })
  return end.record
}

function createEndedCalls({ now, steady }: Clock) {
  const byId = new Map<string, End>()
  // By user alone: other filters examine what is kept, which is little.
  const listing = createListing<End>({ user_id: ({ call }) => call.user_id })
  const shares = new FairShare<End>({ entries: ENDED_CALLS_MAX, entriesPerUser: ENDED_CALLS_PER_USER_MAX })
  const version = createVersion()

  function remove(end: End | undefined): void {
    if (!end?.place) return
    version.raise()
    byId.delete(end.call.correlation_id)
    listing.remove(end)
    shares.remove(end.place)
  }

  /** Deletes expired calls: they ended in the order of the listing. */
  function sweep(): void {
    const time = steady()
    for (let first = listing.first(); first && first.keptUntil <= time; first = listing.first()) remove(first)
  }

  return {
    add(call: Call, how: CallEnd): void {
      sweep()
      remove(byId.get(call.correlation_id))
      version.raise()
      const keptUntil = steady() + ENDED_CALL_KEPT_MS
      const sequence = listing.arrive()
      const { at = now() } = how
      const end: End = { sequence, call, how, at, keptUntil, place: undefined, record: undefined }
      byId.set(call.correlation_id, end)
      listing.add(end)
      end.place = shares.add(call.user_id, end)
      remove(shares.excess(end.place))
    },

    /** Returns a new text after every change. */
    version(): string {
      sweep()
      return version.text()
    },

    get(correlationId: string): EndedCall | null {
      sweep()
      const end = byId.get(correlationId)
      return end ? recordOf(end) : null
    },

    list(filter: EndedCallFilter, page: PageQuery, bound: number): Page<EndedCall> {
      sweep()
      return listing.list(filter, { order: 'newest', ...page }, recordOf, bound)
    },
  }
}

/** Maximum number of overdue calls that one opening removes: more than it adds. */
const OVERDUE_MAX = 16

export type CallEntry = Entry<Call, Waiting>
export type Calls = ReturnType<typeof createCalls>

/** The caller that waits for a call. */
interface Waiting {
  /** Deadline by the steady clock: a timer of a busy process may be late. */
  readonly endsAt: number
  resolve(result: unknown): void
  reject(error: unknown): void
  /** Clears the timer and the listener of the caller's signal. */
  release(): void
}

/** The key of the index by deadline. */
interface Due {
  readonly sequence: number
  readonly state: Pick<Waiting, 'endsAt'>
}

export function createCalls(clock: Clock) {
  const { now } = clock
  const ended = createEndedCalls(clock)
  const table = createTable<Call, Waiting>({ fields: ['client_id', 'action'] })
  const deadlines = new OrderedIndex<Due, CallEntry>(
    (entry) => entry,
    (a, b) => byNumber(a.state.endsAt, b.state.endsAt) || byNumber(a.sequence, b.sequence),
  )
  const counters: CallCounters = {
    opened: 0,
    succeeded: 0,
    failed: 0,
    timed_out: 0,
    cancelled: 0,
    unanswered: 0,
    late: 0,
    foreign: 0,
  }
  let since: string | null = null

  function count(what: keyof CallCounters): void {
    since ??= toTimestamp(now())
    counters[what]++
  }

  /** When the lease of each observed call ends, which is renewed by reports: in this order. */
  const leases = new Map<CallEntry, number>()

  function end(entry: CallEntry, outcome: CallOutcomeName, how: CallEnd = { outcome }): Waiting {
    table.remove(entry)
    if (!leases.delete(entry)) deadlines.delete(entry)
    entry.state.release()
    ended.add(entry.record, how)
    count(outcome)
    return entry.state
  }

  function timeOut(entry: CallEntry): void {
    end(entry, 'timed_out').reject(new Refusal('timeout'))
  }

  return {
    table,
    ended,
    count,
    counters: counters as Readonly<CallCounters>,
    since: () => since,
    /** Returns the number of calls that are past their deadline at `time` and have not been ended. */
    overdue: (time: number) => deadlines.rank({ sequence: Number.POSITIVE_INFINITY, state: { endsAt: time } }),

    add(call: Call, waiting: Waiting): CallEntry {
      const entry = table.add(call.correlation_id, call, waiting)
      if (!call.observed) deadlines.insert(entry)
      count('opened')
      return entry
    },

    /** An observed call was reported. */
    renew(entry: CallEntry): void {
      leases.delete(entry)
      leases.set(entry, clock.steady() + OBSERVED_LEASE_MS)
    },

    /** Ends observed calls that were not reported any longer. */
    sweepObserved(): void {
      const time = clock.steady()
      for (const [entry, endsAt] of leases) {
        if (endsAt > time) return
        end(entry, 'unanswered')
      }
    },

    end,
    timeOut,
    /** Records a call that has ended before it was added. */
    addEnded(call: Call, how: CallEnd): void {
      count('opened')
      ended.add(call, how)
      count(how.outcome)
    },

    /**
     * Ends calls that are past their deadline at `time`: their timers may be late, and use another clock than an
     * injected one.
     */
    timeOutSome(time: number): void {
      for (let left = OVERDUE_MAX; left > 0; left--) {
        const first = deadlines.first()
        if (!first || first.state.endsAt > time) return
        timeOut(first)
      }
    },
  }
}
