/** The live correlator of calls and replies of one process, and the inspector that looks through at it. */

import { onAbort } from '../async/abort.js'
import { type Clock, createClock } from '../async/clock.js'
import type { Ending } from '../async/ending.js'
import { unref } from '../async/timer.js'
import { toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { checkOptions, FUNCTION, resolveBounds, type Shape } from '../contract/options.js'
import { annotated, examinable } from '../contract/page.js'
import {
  type CallSender,
  checkOutcome,
  OpenCallInput,
  type PendingCall,
  RPC_BOUNDS,
  RPC_OPTIONS,
  type RpcCorrelator,
  type RpcCounters,
  type RpcInspector,
  type RpcOptions,
} from '../contract/rpc.js'
import { Refusal } from '../refusal.js'
import { createTable, type Entry } from './table/table.js'

export interface RpcCorrelatorOptions extends RpcOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
}

export const RPC_CORRELATOR_OPTIONS: Shape<RpcCorrelatorOptions> = { ...RPC_OPTIONS, now: FUNCTION }

export interface MemoryRpcCorrelator extends RpcCorrelator {
  readonly counters: Readonly<RpcCounters>
  /** Rejects every pending call with `Refusal` `closed`, and every later `open`. Waits for nobody. */
  close(): Promise<Ending>
}

type Call = Omit<PendingCall, 'age_ms'>
type CallTable = ReturnType<typeof createTable<Call, Waiting>>

interface Waiting {
  resolve(result: unknown): void
  reject(error: unknown): void
  /** Ends the timer and the listening to the caller's signal. */
  release(): void
}

/** Reads the pending calls. */
function createRpcInspector(table: CallTable, { steady }: Clock, connections: RpcOptions['connections']): RpcInspector {
  const view =
    (time: number) =>
    (entry: Entry<Call, Waiting>): PendingCall => ({
      ...entry.record,
      age_ms: time - entry.touchedAt,
    })

  const inspector: RpcInspector = {
    listPending: (filter, page, ask) => table.list(filter, page, view(steady()), examinable(ask)),
    getPending(correlationId) {
      const entry = table.get(correlationId)
      return entry ? view(steady())(entry) : null
    },
    listUserIds: (page, ask) => table.users.userIds(page, ({ record }) => record, true, examinable(ask)),
    observeUsers(userIds) {
      const parts = userIds.filter(table.users.knowsUser).map((user_id) => {
        const { ids, cut } = table.users.clientIds(user_id)
        const pending_rpc = table.sizeOf('user_id', user_id)
        return { user_id, pending_rpc, observed_client_ids: ids, ...(cut ? { truncated: true } : {}) }
      })
      return annotated(parts, { examined: 0 })
    },
  }
  if (connections)
    inspector.checkInstance = async (instance) => {
      const current_instance_id = await connections.currentInstance(instance)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    }
  return inspector
}

/**
 * A correlator in memory.
 *
 * @example
 * const rpc = createRpcCorrelator()
 * const { correlation_id, result } = await rpc.open({ action: 'tabs.list', user_id: 'u', client_id: 'c', timeoutMs: 5_000 })
 */
export function createRpcCorrelator(options: RpcCorrelatorOptions = {}): Inspected<MemoryRpcCorrelator, RpcInspector> {
  checkOptions(options, RPC_CORRELATOR_OPTIONS)
  const { newId = randomId, connections } = options
  const { maxPending, maxPendingPerUser, defaultTimeoutMs } = resolveBounds(options, RPC_BOUNDS)
  const clock = createClock(options.now ?? Date.now)
  const table = createTable<Call, Waiting>({ fields: ['client_id', 'action'] })
  const counters: RpcCounters = { settled: 0, timed_out: 0, cancelled: 0, late: 0, foreign: 0 }
  let closed = false

  function end(entry: Entry<Call, Waiting>): Waiting {
    table.remove(entry)
    entry.state.release()
    return entry.state
  }

  return {
    inspector: createRpcInspector(table, clock, connections),
    counters,
    async open(given) {
      const input = parseInput(OpenCallInput, given)
      const { signal } = given
      if (closed) throw new Refusal('closed')
      if (signal?.aborted) throw new Refusal('cancelled')
      if (table.size >= maxPending) throw new Refusal('capacity_exceeded', `${maxPending} pending calls`)
      const { action, user_id, client_id, instance_id = null, timeoutMs = defaultTimeoutMs } = input
      if (table.sizeOf('user_id', user_id) >= maxPendingPerUser)
        throw new Refusal('capacity_exceeded', `${maxPendingPerUser} pending calls of one user`)
      const { correlation_id = newId() } = input
      if (table.get(correlation_id)) throw new Refusal('command_conflict')
      const time = clock.now()
      const call: Call = Object.freeze({
        correlation_id,
        action,
        user_id,
        client_id,
        instance_id,
        started_at: toTimestamp(time),
        deadline_at: toTimestamp(time + timeoutMs),
      })
      const result = new Promise<unknown>((resolve, reject) => {
        const timer = setTimeout(() => {
          counters.timed_out++
          end(entry).reject(new Refusal('timeout'))
        }, timeoutMs)
        // Whoever named an end may be waiting for it with nothing else to do, and must get it; a call that named none is
        // no reason for a process to live.
        if (input.timeoutMs === undefined) unref(timer)
        const forget = onAbort(signal, () => {
          counters.cancelled++
          end(entry).reject(new Refusal('cancelled'))
        })
        const release = () => {
          clearTimeout(timer)
          forget()
        }
        const entry = table.add(correlation_id, call, { resolve, reject, release })
        entry.touchedAt = clock.steady()
      })
      // Nobody may be listening when a call ends; that is not a defect of the process.
      result.catch(() => {})
      return { correlation_id, result }
    },
    async settle(correlationId, outcome, from) {
      const sender = checkOutcome(outcome, from)
      const entry = table.get(correlationId)
      if (!entry) {
        counters.late++
        return false
      }
      if (isForeign(entry.record, sender)) {
        counters.foreign++
        return false
      }
      counters.settled++
      const { resolve, reject } = end(entry)
      if (outcome.ok) resolve(outcome.result)
      else reject(outcome.error)
      return true
    },
    async close() {
      closed = true
      for (const entry of table.entries()) end(entry).reject(new Refusal('closed'))
      return { cut: 0 }
    },
  }
}

function isForeign(call: Call, from: CallSender | undefined): boolean {
  if (!from) return false
  const { user_id, client_id, instance_id } = from
  if (user_id !== call.user_id || client_id !== call.client_id) return true
  return call.instance_id !== null && instance_id !== undefined && instance_id !== call.instance_id
}

/** 128 bits, where a UUID has 122. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
