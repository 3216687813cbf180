/** The live correlator of a deployment in a shared store: a call opened on one node is settled from any. */

import { whenAborted } from '../../async/abort.js'
import { CLOSE_TIMEOUT_MS, type Ending, endWithin } from '../../async/ending.js'
import { unref } from '../../async/timer.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { resolveBounds } from '../../contract/options.js'
import {
  checkOutcome,
  OpenCallInput,
  RPC_BOUNDS,
  type RpcCorrelator,
  type RpcCounters,
  type RpcInspector,
  type RpcOptions,
} from '../../contract/rpc.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { runInShards, runScript, unusable } from '../store/script.js'
import { createStore, type Store, type StoreOptions } from '../store/store.js'
import { decodeReply, encodeReply } from './format.js'
import { createRpcInspector } from './inspector.js'
import { createReplies } from './replies.js'
import { OPEN_CALL, SETTLE_CALL, WITHDRAW_CALL } from './scripts.js'

export type RedisRpcCorrelatorOptions = StoreOptions & RpcOptions

export interface RedisRpcCorrelator extends RpcCorrelator {
  readonly counters: Readonly<RpcCounters>
  /**
   * Rejects every call opened here with `Refusal` `closed`, and every later `open`; within 5 s, whatever the store does.
   * Resolves to how many calls the store could not be told of: there they end by themselves.
   */
  close(): Promise<Ending>
}

interface Waiting {
  shard: number
  /** Names this opening: the same id may be opened again, by this node or another. */
  attempt: string
  resolve(result: unknown): void
  reject(error: unknown): void
  release(): void
}

/**
 * A correlator in Redis. From the first call to `close()` it listens for replies on the connection that all share who
 * listen over the client.
 *
 * @example
 * const rpc = createRedisRpcCorrelator({ client, deploymentId: 'prod' })
 */
export function createRedisRpcCorrelator(
  options: RedisRpcCorrelatorOptions,
): Inspected<RedisRpcCorrelator, RpcInspector> {
  return rpcCorrelatorOn(createStore(options), options)
}

export function rpcCorrelatorOn(store: Store, options: RpcOptions): Inspected<RedisRpcCorrelator, RpcInspector> {
  const { newId = randomId, connections } = options
  const { maxPending, maxPendingPerUser, defaultTimeoutMs } = resolveBounds(options, RPC_BOUNDS)
  const counters: RpcCounters = { settled: 0, timed_out: 0, cancelled: 0, late: 0, foreign: 0 }
  const pending = new Map<string, Waiting>()
  const node = randomId()
  const replies = createReplies(store, node, (shard, id) => void take(shard, id))

  function end(id: string): Waiting | undefined {
    const waiting = pending.get(id)
    pending.delete(id)
    replies.forget(id)
    waiting?.release()
    return waiting
  }

  function deliver(id: string, text: string): void {
    const waiting = end(id)
    // Received: nobody asks for it any more. Where this is lost it goes by itself.
    if (waiting) {
      const key = store.key(waiting.shard, 'calls', 'reply', id)
      store.command(['DEL', key], key).catch(() => {})
    }
    try {
      const reply = decodeReply(text)
      if (reply.ok) waiting?.resolve(reply.result)
      else waiting?.reject(reply.error)
    } catch (error) {
      waiting?.reject(unusable(store, error))
    }
  }

  /** Fetches the reply that the bell or the poll has told of. */
  async function take(shard: number, id: string): Promise<void> {
    const attempt = pending.get(id)?.attempt
    if (attempt === undefined) return
    try {
      const text = await runScript(store, WITHDRAW_CALL, shard, { id, attempt })
      if (text !== null) deliver(id, text)
    } catch {
      // The next look tries again, and the call has its own end of time.
    }
  }

  /** Takes a call away that ends here, unless its reply was faster. Whether the store knows. */
  async function withdraw(id: string, why: 'timeout' | 'cancelled' | 'closed'): Promise<boolean> {
    const waiting = pending.get(id)
    if (!waiting) return true
    waiting.release()
    let text: string | null = null
    let isTold = false
    try {
      text = await runScript(store, WITHDRAW_CALL, waiting.shard, { id, attempt: waiting.attempt })
      isTold = true
    } catch {
      // Nobody can tell whether a reply came: for the caller the call has ended, in the store it ends by itself.
    }
    if (text !== null) deliver(id, text)
    else {
      if (why === 'timeout') counters.timed_out++
      if (why === 'cancelled') counters.cancelled++
      end(id)?.reject(new Refusal(why))
    }
    return isTold
  }

  let closing: Promise<Ending> | undefined
  async function close(): Promise<Ending> {
    let cut = pending.size
    const telling = [...pending.keys()].map(async (id) => {
      if (await withdraw(id, 'closed')) cut--
    })
    await endWithin(telling, CLOSE_TIMEOUT_MS)
    for (const id of [...pending.keys()]) end(id)?.reject(new Refusal('closed'))
    await replies.close()
    return { cut }
  }

  return {
    inspector: createRpcInspector(store, connections && (async (client) => connections.currentInstance(client))),
    counters,
    async open(given) {
      const { timeoutMs = defaultTimeoutMs, ...input } = parseInput(OpenCallInput, given)
      const { signal } = given
      const check = () => {
        if (closing) throw new Refusal('closed')
        if (signal?.aborted) throw new Refusal('cancelled')
      }
      check()
      const { correlation_id = newId(), instance_id = null } = input
      if (pending.has(correlation_id)) throw new Refusal('command_conflict')
      const shard = shardOf(input.user_id, await store.claimShards())
      await replies.listen(shard)
      check()
      const attempt = randomId()
      const fields = JSON.stringify({ ...input, correlation_id, instance_id, node, attempt })
      const opened = runScript(store, OPEN_CALL, shard, {
        id: correlation_id,
        fields,
        timeout: timeoutMs,
        max_pending: maxPending,
        max_per_user: maxPendingPerUser,
      })
      // Expected before it is opened: the reply may overtake the answer.
      const result = new Promise<unknown>((resolve, reject) => {
        const timer = unref(setTimeout(() => void withdraw(correlation_id, 'timeout'), timeoutMs))
        const forget = whenAborted(signal, () => void withdraw(correlation_id, 'cancelled'))
        const release = () => {
          clearTimeout(timer)
          forget()
        }
        pending.set(correlation_id, { shard, attempt, resolve, reject, release })
      })
      // Nobody may be listening when a call ends; that is not a defect of the process.
      result.catch(() => {})
      replies.expect(shard, correlation_id)
      try {
        await opened
      } catch (error) {
        end(correlation_id)
        // It may stand there all the same, and nobody waits for it.
        runScript(store, WITHDRAW_CALL, shard, { id: correlation_id, attempt }).catch(() => {})
        throw error
      }
      return { correlation_id, result }
    },
    async settle(correlationId, outcome, from) {
      const sender = checkOutcome(outcome, from)
      const text = encodeReply(outcome)
      const local = pending.get(correlationId)
      const given = {
        id: correlationId,
        reply: text,
        has_sender: sender ? 1 : 0,
        user: sender?.user_id ?? '',
        client: sender?.client_id ?? '',
        instance: sender?.instance_id ?? '',
        name: randomId(),
      }
      const run = (shard: number) => runScript(store, SETTLE_CALL, shard, given)
      const shards = await store.claimShards()
      const became = local
        ? await run(local.shard)
        : ((await runInShards(run, shards, (word) => word !== 'late'))?.answer ?? 'late')
      counters[became]++
      if (became === 'settled' && local) void take(local.shard, correlationId)
      return became === 'settled'
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** 128 bits, where a UUID has 122. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
