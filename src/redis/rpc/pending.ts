/**
 * The calls that wait on this node, and how each ends: by its reply, its deadline, its caller, or the end of the node.
 */
import { CLOSE_TIMEOUT_MS, type CloseResult, endWithin } from '../../internal/async/deadline.js'
import { createTicker } from '../../internal/async/timer.js'
import { COUNTED_ACTIONS_MAX, OTHER_ACTION } from '../../internal/contract/call-counts.js'
import {
  ENDED_CALL_KEPT_MS,
  ENDED_CALLS_MAX,
  ENDED_CALLS_PER_USER_MAX,
  type RpcCounters,
} from '../../internal/contract/rpc.js'
import { Refusal } from '../../internal/refusal.js'
import { listen } from '../store/listener.js'
import { count, ignoreReply, parseFlag, parseText } from '../store/reply.js'
import { defineScript, runScript, toUnavailable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { decodeReply } from './inspector.js'
import { scripts } from './rpc.lua'

// The scripts of the correlator: pending calls, and the one reply to each, on whichever node it arrives.

const CONSTANTS = { ENDED_CALLS_MAX, ENDED_CALLS_PER_USER_MAX, ENDED_CALL_KEPT_MS }

/** Opens a call with a `timeout` in ms. */
export const OPEN_CALL = defineScript(
  'rpc.open',
  { args: ['id', 'fields', 'timeout', 'max_pending', 'max_per_user'], constants: CONSTANTS, answer: ignoreReply },
  scripts.open,
)

/**
 * Ends a call with its reply. `has_sender`: 1 if the reply names its sender, whose `instance` may be ''; `name`: the
 * name of this reply; `how`: the outcome of the call. `counts_late`: 1 if no other shard is queried that might have the
 * call.
 */
export const SETTLE_CALL = defineScript(
  'rpc.settle',
  {
    args: ['id', 'reply', 'how', 'has_sender', 'user', 'client', 'instance', 'name', 'counts_late'],
    constants: CONSTANTS,
    answer: (reply) => (reply === 'settled' || reply === 'foreign' ? reply : 'late'),
  },
  scripts.settle,
)

/** Counts a reply to a call that no shard knows. */
export const COUNT_LATE = defineScript(
  'rpc.late',
  { args: ['name'], constants: CONSTANTS, answer: ignoreReply },
  scripts.late,
)

/**
 * Removes a call, with `how` as its outcome, or only reads it if `how` is ''. Returns its reply if there is one. The
 * reply is kept until it expires or was received: a node that lost it reads it again.
 */
export const WITHDRAW_CALL = defineScript(
  'rpc.withdraw',
  { args: ['id', 'attempt', 'how'], constants: CONSTANTS, answer: parseText },
  scripts.withdraw,
)

/** Removes calls past their deadline, whose node has died, and expired ended calls, for the loop of a node. Returns whether there is more. */
export const SWEEP_CALLS = defineScript(
  'rpc.sweep',
  { args: [], constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  scripts.sweep,
)

/** Records what a follower has seen. Returns the number of open calls that had no room. */
export const OBSERVE_CALLS = defineScript(
  'rpc.observe',
  {
    args: ['observer', 'sequence', 'actions', 'evicted', 'unrecorded', 'lease', 'max_pending', 'max_per_user'],
    rest: 'calls',
    constants: { ...CONSTANTS, ACTIONS_MAX: COUNTED_ACTIONS_MAX, OTHER_ACTION },
    answer: count,
  },
  scripts.observe,
)

// Detects replies to this node's calls: a signal channel per node, and a check every second for signals that a lost
// connection missed.

/** Interval between checks in ms: the maximum delay after a lost signal. */
const POLL_MS = 1_000
/** Maximum number of replies that are checked at the same time. */
const POLL_MAX = 32

interface Replies {
  /** Subscribes in `shard`. Resolves when signals are received there. Never rejects: the checks find replies too. */
  listen(shard: number): Promise<void>
  /** Starts checking for the reply to a call, until `forget`. */
  expect(shard: number, id: string): void
  forget(id: string): void
  close(): Promise<void>
}

/** Creates the detector. It calls `take` with each expected id that seems to have a reply; `take` fetches it. */
function createReplies(store: Store, node: string, take: (shard: number, id: string) => void): Replies {
  const waiting = new Map<string, number>()
  const subscribed = new Map<number, Promise<void>>()
  const listening = listen(store, (isUp) => void (isUp && look()))
  const ticker = createTicker(look, POLL_MS)

  const hear = (id: string) => {
    const shard = waiting.get(id)
    if (shard !== undefined) take(shard, id)
  }

  /** Never rejects: a shard that fails is retried with the next check, and does not delay others. */
  async function look(): Promise<void> {
    const byShard = new Map<number, string[]>()
    for (const [id, shard] of waiting) byShard.set(shard, [...(byShard.get(shard) ?? []), id])
    await Promise.allSettled([...byShard].map(([shard, ids]) => lookIn(shard, ids)))
  }

  async function lookIn(shard: number, ids: readonly string[]): Promise<void> {
    for (let i = 0; i < ids.length; i += POLL_MAX) {
      const some = ids.slice(i, i + POLL_MAX)
      const keys = some.map((id) => store.key(shard, 'calls', 'reply', id))
      const found = await Promise.all(keys.map((key) => store.command(['EXISTS', key], key)))
      some.forEach((id, j) => {
        if (found[j] === 1) take(shard, id)
      })
    }
  }

  return {
    listen(shard) {
      const known = subscribed.get(shard)
      if (known) return known
      const heard = listening.subscribe(shard, store.key(shard, 'calls', 'signals', node), hear).catch(() => {
        // Retried with the next call; until then the checks find replies.
        subscribed.delete(shard)
      })
      subscribed.set(shard, heard)
      return heard
    },
    expect(shard, id) {
      waiting.set(id, shard)
      ticker.start()
    },
    forget(id) {
      waiting.delete(id)
      if (waiting.size === 0) ticker.stop()
    },
    async close() {
      ticker.stop()
      await listening.close()
    },
  }
}

interface Waiting {
  shard: number
  /** Identifies this call: the same id may be opened again, on this node or another. */
  attempt: string
  resolve(result: unknown): void
  reject(error: unknown): void
  release(): void
}

export function createPendingCalls(store: Store, node: string, counters: RpcCounters) {
  const pending = new Map<string, Waiting>()
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
    // The reply was received and is not needed any more. If the command is lost, the reply expires.
    if (waiting) {
      const key = store.key(waiting.shard, 'calls', 'reply', id)
      store.command(['DEL', key], key).catch(() => {})
    }
    try {
      const reply = decodeReply(text)
      if (reply.ok) waiting?.resolve(reply.result)
      else waiting?.reject(reply.error)
    } catch (error) {
      waiting?.reject(toUnavailable(store, error))
    }
  }

  /** Fetches a reply that a signal or a check has found. */
  async function take(shard: number, id: string): Promise<void> {
    const waiting = pending.get(id)
    if (!waiting) return
    try {
      const text = await runScript(store, WITHDRAW_CALL, shard, { id, attempt: waiting.attempt, how: '' })
      // Another check may have been faster, and the id may have been reused.
      if (text !== null && pending.get(id) === waiting) deliver(id, text)
    } catch {
      // The next check retries, and the call has its own timeout.
    }
  }

  /** Removes a call that ends here, unless its reply was faster. Returns whether the store was updated. */
  async function withdraw(id: string, reason: 'timeout' | 'cancelled' | 'closed'): Promise<boolean> {
    const waiting = pending.get(id)
    if (!waiting) return true
    waiting.release()
    let text: string | null = null
    let isTold = false
    const how = reason === 'timeout' ? 'timed_out' : 'cancelled'
    try {
      text = await runScript(store, WITHDRAW_CALL, waiting.shard, { id, attempt: waiting.attempt, how })
      isTold = true
    } catch {
      // Unknown whether a reply arrived: for the caller the call has ended, in the store it expires.
    }
    if (pending.get(id) !== waiting) return isTold
    if (text !== null) deliver(id, text)
    else {
      counters[how]++
      end(id)?.reject(new Refusal(reason))
    }
    return isTold
  }

  async function close(): Promise<CloseResult> {
    let aborted = pending.size
    const withdrawing = [...pending.keys()].map(async (id) => {
      if (await withdraw(id, 'closed')) aborted--
    })
    await endWithin(withdrawing, CLOSE_TIMEOUT_MS)
    for (const id of [...pending.keys()]) end(id)?.reject(new Refusal('closed'))
    await replies.close()
    return { aborted }
  }

  return {
    end,
    take,
    withdraw,
    close,
    listen: replies.listen,
    has: (id: string) => pending.has(id),
    get: (id: string) => pending.get(id),

    /** Registers a call until its end. */
    add(id: string, waiting: Waiting) {
      pending.set(id, waiting)
      replies.expect(waiting.shard, id)
    },
  }
}
