/** The calls that wait at this node, and how each ends: by its reply, its time, its caller, or the node's own end. */
import { CLOSE_TIMEOUT_MS, type Ending, endWithin } from '../../async/ending.js'
import type { RpcCounters } from '../../contract/rpc.js'
import { Refusal } from '../../refusal.js'
import { runScript, unusable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { decodeReply } from './format.js'
import { createReplies } from './replies.js'
import { WITHDRAW_CALL } from './scripts.js'

interface Waiting {
  shard: number
  /** Names this opening: the same id may be opened again, by this node or another. */
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

  /** Fetches the reply that a wake-up or the poll has told of. */
  async function take(shard: number, id: string): Promise<void> {
    const waiting = pending.get(id)
    if (!waiting) return
    try {
      const text = await runScript(store, WITHDRAW_CALL, shard, { id, attempt: waiting.attempt, how: '' })
      // Another look may have been faster, and the id be that of another call by now.
      if (text !== null && pending.get(id) === waiting) deliver(id, text)
    } catch {
      // The next look tries again, and the call has its own end of time.
    }
  }

  /** Takes a call away that ends here, unless its reply was faster. Whether the store knows. */
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
      // Nobody can tell whether a reply came: for the caller the call has ended, in the store it ends by itself.
    }
    if (pending.get(id) !== waiting) return isTold
    if (text !== null) deliver(id, text)
    else {
      counters[how]++
      end(id)?.reject(new Refusal(reason))
    }
    return isTold
  }

  async function close(): Promise<Ending> {
    let cut = pending.size
    const withdrawing = [...pending.keys()].map(async (id) => {
      if (await withdraw(id, 'closed')) cut--
    })
    await endWithin(withdrawing, CLOSE_TIMEOUT_MS)
    for (const id of [...pending.keys()]) end(id)?.reject(new Refusal('closed'))
    await replies.close()
    return { cut }
  }

  return {
    end,
    take,
    withdraw,
    close,
    listen: replies.listen,
    has: (id: string) => pending.has(id),
    get: (id: string) => pending.get(id),

    /** Waits for the end of a call from now on. */
    add(id: string, waiting: Waiting) {
      pending.set(id, waiting)
      replies.expect(waiting.shard, id)
    },
  }
}
