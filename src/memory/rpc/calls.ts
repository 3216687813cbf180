/** The pending calls of one process, by arrival and by deadline, and counts of how all others ended. */

import type { Clock } from '../../async/timer.js'
import { toTimestamp } from '../../contract/ids.js'
import {
  type CallCounters,
  type CallOutcomeName,
  ENDED_CALL_KEPT_MS,
  ENDED_CALLS_MAX,
  ENDED_CALLS_PER_USER_MAX,
  type EndedCall,
  type PendingCall,
} from '../../contract/rpc.js'
import { Holders } from '../../fair-share/holders.js'
import { Refusal } from '../../refusal.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'

/** Maximum number of overdue calls that one opening removes: more than it adds. */
const OVERDUE_MAX = 16

export type Call = Omit<PendingCall, 'age_ms' | 'overdue'>
export type CallEntry = Entry<Call, Waiting>
export type Calls = ReturnType<typeof createCalls>

/** The caller that waits for a call. */
export interface Waiting {
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

/** How a call ended. Its record is made when it is first read: most are never read. */
interface End {
  readonly outcome: CallOutcomeName
  /** Epoch ms. */
  readonly at: number
  record: EndedCall | undefined
}

/** Returns the record of an ended call. */
export function toEndedCall({ record: call, state }: Entry<Call, End>): EndedCall {
  const { deadline_at: _, ...rest } = call
  const duration_ms = Math.max(0, state.at - Date.parse(call.started_at))
  state.record ??= Object.freeze({ ...rest, outcome: state.outcome, ended_at: toTimestamp(state.at), duration_ms })
  return state.record
}

/** The newest ended calls, bounded in number, per user and in age. */
function createEndedCalls({ now, steady }: Clock) {
  const table = createTable<Call, End>({ fields: ['client_id', 'action'] })
  const holders = new Holders()

  function remove(entry: Entry<Call, End> | undefined): void {
    if (!entry) return
    table.remove(entry)
    holders.remove(entry.record.user_id)
  }

  function removeOldest(userId: string): void {
    const [oldest] = table.ofUser(userId)
    remove(oldest)
  }

  /** Deletes expired calls: they ended in the order of the table. */
  function sweep(): void {
    const until = steady() - ENDED_CALL_KEPT_MS
    for (let first = table.first(); first && first.touchedAt <= until; first = table.first()) remove(first)
  }

  return {
    /** Deletes expired calls. */
    swept() {
      sweep()
      return table
    },

    add(call: Call, outcome: CallOutcomeName): void {
      const { correlation_id, user_id } = call
      sweep()
      remove(table.get(correlation_id))
      table.add(correlation_id, call, { outcome, at: now(), record: undefined }).touchedAt = steady()
      holders.add(user_id)
      if (holders.of(user_id) > ENDED_CALLS_PER_USER_MAX) removeOldest(user_id)
      else if (table.size > ENDED_CALLS_MAX) removeOldest(holders.fullest as string)
    },
  }
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
    late: 0,
    foreign: 0,
  }
  let since: string | null = null

  function count(what: keyof CallCounters): void {
    since ??= toTimestamp(now())
    counters[what]++
  }

  function end(entry: CallEntry, how: CallOutcomeName): Waiting {
    table.remove(entry)
    deadlines.delete(entry)
    entry.state.release()
    ended.add(entry.record, how)
    count(how)
    return entry.state
  }

  function timeOut(entry: CallEntry): void {
    end(entry, 'timed_out').reject(new Refusal('timeout'))
  }

  return {
    table,
    ended: ended.swept,
    count,
    counters: counters as Readonly<CallCounters>,
    since: () => since,
    /** Returns the number of calls that are past their deadline at `time` and have not been ended. */
    overdue: (time: number) => deadlines.rank({ sequence: Number.POSITIVE_INFINITY, state: { endsAt: time } }),

    add(call: Call, waiting: Waiting): CallEntry {
      const entry = table.add(call.correlation_id, call, waiting)
      deadlines.insert(entry)
      count('opened')
      return entry
    },

    end,
    timeOut,

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
