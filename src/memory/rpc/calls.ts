/** The calls of one process that wait, by their arrival and by their deadlines, and what became of all others. */
import type { Clock } from '../../async/clock.js'
import { toTimestamp } from '../../contract/ids.js'
import type { CallCounters, PendingCall } from '../../contract/rpc.js'
import { Refusal } from '../../refusal.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'

/** Calls whose time is over that one opening takes away at most: more than it adds. */
const OVERDUE_MAX = 16

export type Call = Omit<PendingCall, 'age_ms' | 'overdue'>
export type CallEntry = Entry<Call, Waiting>
export type Calls = ReturnType<typeof createCalls>

/** Who waits for a call to end. */
export interface Waiting {
  /** When its time is over, by the steady clock: a timer of a busy process may be late. */
  readonly endsAt: number
  resolve(result: unknown): void
  reject(error: unknown): void
  /** Ends the timer and the listening to the caller's signal. */
  release(): void
}

/** What calls are ordered by in their second index. */
interface Due {
  readonly sequence: number
  readonly state: Pick<Waiting, 'endsAt'>
}

export function createCalls({ now }: Clock) {
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

  function end(entry: CallEntry, how: 'succeeded' | 'failed' | 'timed_out' | 'cancelled'): Waiting {
    table.remove(entry)
    deadlines.delete(entry)
    entry.state.release()
    count(how)
    return entry.state
  }

  function timeOut(entry: CallEntry): void {
    end(entry, 'timed_out').reject(new Refusal('timeout'))
  }

  return {
    table,
    count,
    counters: counters as Readonly<CallCounters>,
    since: () => since,
    /** How many calls have not been ended although their time was over at `time`. */
    overdue: (time: number) => deadlines.rank({ sequence: Number.POSITIVE_INFINITY, state: { endsAt: time } }),

    add(call: Call, waiting: Waiting): CallEntry {
      const entry = table.add(call.correlation_id, call, waiting)
      deadlines.insert(entry)
      count('opened')
      return entry
    },

    end,
    timeOut,

    /** Ends calls whose time was over at `time`: their timers may be late, and go by another clock where the host has given one. */
    timeOutSome(time: number): void {
      for (let left = OVERDUE_MAX; left > 0; left--) {
        const first = deadlines.first()
        if (!first || first.state.endsAt > time) return
        timeOut(first)
      }
    },
  }
}
