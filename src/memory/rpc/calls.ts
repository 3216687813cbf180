/** The pending calls of one process, by arrival and by deadline, and counts of how all others ended. */

import type { Clock } from '../../async/timer.js'
import { toTimestamp } from '../../contract/ids.js'
import type { CallCounters, CallOutcomeName } from '../../contract/rpc.js'
import { Refusal } from '../../refusal.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'
import { type Call, createEndedCalls } from './ended.js'

/** Maximum number of overdue calls that one opening removes: more than it adds. */
const OVERDUE_MAX = 16

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
    ended,
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
