/** The RPC correlator of one process, and its inspector. */

import { onAbort } from '../../internal/async/abort.js'
import type { CloseResult } from '../../internal/async/deadline.js'
import { createClock, unref } from '../../internal/async/timer.js'
import { publishCalls } from '../../internal/contract/channels.js'
import type { Inspected } from '../../internal/contract/families.js'
import { randomId } from '../../internal/contract/ids.js'
import { type Clocked, parseInput, readOptions, withClock } from '../../internal/contract/options.js'
import {
  type CallSender,
  checkOutcome,
  ObserveCallsInput,
  OpenCallInput,
  type RpcCorrelator,
  type RpcCounters,
  type RpcInspector,
  RpcOptions,
} from '../../internal/contract/rpc.js'
import { Refusal } from '../../internal/refusal.js'
import { type Call, createCalls } from './calls.js'
import { createRpcInspector } from './inspector.js'
import { createObservedTotals, recordObserved } from './observed.js'

/** Options of `createRpcCorrelator`. */
export const RpcCorrelatorOptions = withClock(RpcOptions)
/** Options of `createRpcCorrelator`. */
export interface RpcCorrelatorOptions extends RpcOptions, Clocked {}

/** An RPC correlator with counters, and `close()` for the end of its process. */
export interface MemoryRpcCorrelator extends RpcCorrelator {
  /** How calls have ended since the process started. */
  readonly counters: Readonly<RpcCounters>
  /** Rejects every pending call and every later `open` with `Refusal` `closed`. Does not wait for callers. */
  close(): Promise<CloseResult>
}

/**
 * Creates a correlator in memory.
 *
 * @example
 * const rpc = createRpcCorrelator()
 * const { correlation_id, result } = await rpc.open({ action: 'tabs.list', user_id: 'u', client_id: 'c', timeout_ms: 5_000 })
 */
export function createRpcCorrelator(options: RpcCorrelatorOptions = {}): Inspected<MemoryRpcCorrelator, RpcInspector> {
  const read = readOptions(RpcCorrelatorOptions, options)
  const { newId = randomId, connections, maxPending, maxPendingPerUser, defaultTimeoutMs } = read
  const clock = createClock(read.now)
  const calls = createCalls(clock)
  const { table, counters, count, end, timeOut } = calls
  const observed = createObservedTotals()
  let closed = false

  return publishCalls({
    inspector: createRpcInspector(calls, observed, clock, connections),
    counters: {
      get settled() {
        return counters.succeeded + counters.failed
      },
      get timed_out() {
        return counters.timed_out
      },
      get cancelled() {
        return counters.cancelled
      },
      get late() {
        return counters.late
      },
      get foreign() {
        return counters.foreign
      },
    },
    async open(given) {
      const input = parseInput(OpenCallInput, given)
      const { signal } = input
      if (closed) throw new Refusal('closed')
      if (signal?.aborted) throw new Refusal('cancelled')
      calls.timeOutSome(clock.steady())
      if (table.size >= maxPending)
        throw new Refusal('capacity_exceeded', `maximum of ${maxPending} pending calls reached`)
      const { action, user_id, client_id, instance_id = null, timeout_ms: timeoutMs = defaultTimeoutMs } = input
      if (table.sizeOf('user_id', user_id) >= maxPendingPerUser)
        throw new Refusal('capacity_exceeded', `maximum of ${maxPendingPerUser} pending calls per user reached`)
      const { correlation_id = newId() } = input
      if (table.get(correlation_id)) throw new Refusal('command_conflict')
      const { trace } = input
      const call: Call = {
        correlation_id,
        action,
        user_id,
        client_id,
        instance_id,
        direction: 'to_client',
        observed: false,
        startedAt: clock.now(),
        timeoutMs,
        trace,
      }
      const result = new Promise<unknown>((resolve, reject) => {
        const timer = setTimeout(() => timeOut(entry), timeoutMs)
        // A caller that set a timeout may have nothing else to wait for, so the timer keeps the process alive; the
        // default timeout does not.
        if (input.timeout_ms === undefined) unref(timer)
        const forget = onAbort(signal, () => {
          end(entry, 'cancelled').reject(new Refusal('cancelled'))
        })
        const release = () => {
          clearTimeout(timer)
          forget()
        }
        const startedAt = clock.steady()
        const entry = calls.add(call, { endsAt: startedAt + timeoutMs, resolve, reject, release })
        entry.touchedAt = startedAt
      })
      // A rejection that the caller does not handle must not end the process.
      result.catch(() => {})
      return { correlation_id, result }
    },
    async settle(correlationId, outcome, from) {
      const sender = checkOutcome(outcome, from)
      const entry = table.get(correlationId)
      if (!entry || entry.record.observed) {
        count('late')
        return false
      }
      if (entry.state.endsAt <= clock.steady()) {
        timeOut(entry)
        count('late')
        return false
      }
      if (isForeign(entry.record, sender)) {
        count('foreign')
        return false
      }
      const { resolve, reject } = end(entry, outcome.ok ? 'succeeded' : 'failed')
      if (outcome.ok) resolve(outcome.result)
      else reject(outcome.error)
      return true
    },
    async observe(given) {
      const report = parseInput(ObserveCallsInput, given)
      if (closed) throw new Refusal('closed')
      if (!observed.isNew(report)) return 0
      observed.add(report)
      calls.sweepObserved()
      const bounds = { pending: maxPending / 2, perUser: maxPendingPerUser / 2 }
      return recordObserved(calls, clock, report.calls, bounds)
    },
    async close() {
      closed = true
      for (const entry of table.entries())
        end(entry, entry.record.observed ? 'unanswered' : 'cancelled').reject(new Refusal('closed'))
      return { aborted: 0 }
    },
  })
}

function isForeign(call: Call, from: CallSender | undefined): boolean {
  if (!from) return false
  const { user_id, client_id, instance_id } = from
  if (user_id !== call.user_id || client_id !== call.client_id) return true
  return call.instance_id !== null && instance_id !== undefined && instance_id !== call.instance_id
}
