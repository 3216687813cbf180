/** The RPC correlator of a deployment in a shared store: a call opened on one node can be settled on any node. */

import { onAbort } from '../../internal/async/abort.js'
import type { CloseResult } from '../../internal/async/deadline.js'
import { unref } from '../../internal/async/timer.js'
import { publishCalls } from '../../internal/contract/channels.js'
import type { Inspected } from '../../internal/contract/families.js'
import { randomId, traceFields } from '../../internal/contract/ids.js'
import { parseInput, readParts } from '../../internal/contract/options.js'
import {
  checkOutcome,
  OBSERVED_LEASE_MS,
  ObserveCallsInput,
  OpenCallInput,
  type RpcCorrelator,
  type RpcCounters,
  type RpcInspector,
  RpcOptions,
} from '../../internal/contract/rpc.js'
import { Refusal } from '../../internal/refusal.js'
import { shardOf } from '../store/keys.js'
import { runInShards, runScript, throwMostSevere } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createRpcInspector, encodeReply } from './inspector.js'
import { COUNT_LATE, createPendingCalls, OBSERVE_CALLS, OPEN_CALL, SETTLE_CALL, WITHDRAW_CALL } from './pending.js'

/** Options of `createRedisRpcCorrelator`. */
export type RedisRpcCorrelatorOptions = StoreOptions & RpcOptions

/** An RPC correlator with counters, and `close()` for the end of its node. */
export interface RedisRpcCorrelator extends RpcCorrelator {
  /** How calls ended on this node since it started. */
  readonly counters: Readonly<RpcCounters>
  /**
   * Rejects every call opened here and every later `open` with `Refusal` `closed`. Takes at most 5 s, even if the store
   * stalls. Resolves with the number of calls that could not be removed from the store: those expire there.
   */
  close(): Promise<CloseResult>
}

/**
 * Creates a correlator in Redis. From the first call to `close()` it uses the subscriber connection that all listeners
 * of the client share.
 *
 * @example
 * const rpc = createRedisRpcCorrelator({ client, deploymentId: 'prod' })
 */
export function createRedisRpcCorrelator(
  options: RedisRpcCorrelatorOptions,
): Inspected<RedisRpcCorrelator, RpcInspector> {
  return rpcCorrelatorOn(createStore(options, inStore(RpcOptions)), options)
}

export function rpcCorrelatorOn(store: Store, options: RpcOptions): Inspected<RedisRpcCorrelator, RpcInspector> {
  const read = readParts(RpcOptions, options)
  const { newId = randomId, connections, maxPending, maxPendingPerUser, defaultTimeoutMs } = read
  const counters: RpcCounters = { settled: 0, timed_out: 0, cancelled: 0, late: 0, foreign: 0 }
  const node = randomId()
  const pending = createPendingCalls(store, node, counters)
  let closing: Promise<CloseResult> | undefined

  return publishCalls({
    inspector: createRpcInspector(store, connections && (async (client) => connections.currentInstance(client))),
    counters,
    async open(given) {
      const { timeout_ms: timeoutMs = defaultTimeoutMs, signal, ...input } = parseInput(OpenCallInput, given)
      const { correlation_id = newId(), instance_id = null } = input
      const check = () => {
        if (closing) throw new Refusal('closed')
        if (signal?.aborted) throw new Refusal('cancelled')
        if (pending.has(correlation_id)) throw new Refusal('command_conflict')
      }
      check()
      const shard = shardOf(input.user_id, await store.claimShards())
      await pending.listen(shard)
      // Another call with this id may have been opened in the meantime. From here to `add` nothing is awaited.
      check()
      const attempt = randomId()
      const fields = JSON.stringify({
        ...input,
        ...traceFields(input.trace),
        correlation_id,
        instance_id,
        direction: 'to_client',
        observed: false,
        node,
        attempt,
      })
      const opened = runScript(store, OPEN_CALL, shard, {
        id: correlation_id,
        fields,
        timeout: timeoutMs,
        max_pending: maxPending,
        max_per_user: maxPendingPerUser,
      })
      // Registered before it is opened: the call's reply may arrive before the script's.
      const result = new Promise<unknown>((resolve, reject) => {
        const timer = unref(setTimeout(() => void pending.withdraw(correlation_id, 'timeout'), timeoutMs))
        const forget = onAbort(signal, () => void pending.withdraw(correlation_id, 'cancelled'))
        const release = () => {
          clearTimeout(timer)
          forget()
        }
        pending.add(correlation_id, { shard, attempt, resolve, reject, release })
      })
      // A rejection that the caller does not handle must not end the process.
      result.catch(() => {})
      try {
        await opened
      } catch (error) {
        // The call may have ended already, and its id may have been reused.
        if (pending.get(correlation_id)?.attempt === attempt) pending.end(correlation_id)
        // The call may have been stored all the same, and nothing waits for it.
        runScript(store, WITHDRAW_CALL, shard, { id: correlation_id, attempt, how: 'cancelled' }).catch(() => {})
        throw error
      }
      return { correlation_id, result }
    },
    async settle(correlationId, outcome, from) {
      const sender = checkOutcome(outcome, from)
      const text = encodeReply(outcome)
      const local = pending.get(correlationId)
      const shards = await store.claimShards()
      const isAlone = local !== undefined || shards === 1
      const given = {
        id: correlationId,
        reply: text,
        how: outcome.ok ? 'succeeded' : 'failed',
        counts_late: isAlone ? 1 : 0,
        has_sender: sender ? 1 : 0,
        user: sender?.user_id ?? '',
        client: sender?.client_id ?? '',
        instance: sender?.instance_id ?? '',
        name: randomId(),
      }
      const run = (shard: number) => runScript(store, SETTLE_CALL, shard, given)
      const end = local
        ? await run(local.shard)
        : ((await runInShards(run, shards, (answer) => answer !== 'late'))?.answer ?? 'late')
      counters[end]++
      // The reply is dropped even if it cannot be counted.
      if (end === 'late' && !isAlone)
        await runScript(store, COUNT_LATE, shardOf(correlationId, shards), { name: given.name }).catch(store.onError)
      if (end === 'settled' && local) void pending.take(local.shard, correlationId)
      return end === 'settled'
    },
    async observe(given) {
      const { calls, actions, evicted, unrecorded, observer, sequence } = parseInput(ObserveCallsInput, given)
      if (closing) throw new Refusal('closed')
      const shards = await store.claimShards()
      const own = shardOf(observer, shards)
      const byShard = new Map<number, string[]>()
      if (actions.length + evicted + unrecorded > 0) byShard.set(own, [])
      for (const call of calls) {
        const shard = shardOf(call.user_id, shards)
        const texts = byShard.get(shard) ?? []
        byShard.set(shard, texts)
        texts.push(JSON.stringify({ ...call, ...traceFields(call.trace) }))
      }
      const run = ([shard, texts]: [number, string[]]) =>
        runScript(store, OBSERVE_CALLS, shard, {
          observer,
          sequence,
          actions: JSON.stringify(shard === own ? actions : []),
          evicted: shard === own ? evicted : 0,
          unrecorded: shard === own ? unrecorded : 0,
          lease: OBSERVED_LEASE_MS,
          max_pending: Math.floor(maxPending / 2),
          max_per_user: Math.floor(maxPendingPerUser / 2),
          calls: texts,
        })
      const refused = await Promise.allSettled([...byShard].map(run))
      throwMostSevere(refused)
      return refused.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0)
    },
    close() {
      closing ??= pending.close()
      return closing
    },
  })
}
