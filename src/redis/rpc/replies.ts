/** How a node hears of replies to its calls: wake-ups for each node, and a look every second at what a lost link has missed. */
import { createTicker } from '../../async/timer.js'
import { listen } from '../store/listener.js'
import type { Store } from '../store/store.js'

/** A lost wake-up costs a caller this much at most. */
const POLL_MS = 1_000
/** Replies asked for in one command: each may be a mebibyte. */
const POLL_MAX = 32

export interface Replies {
  /** Listens in `shard`; resolves when replies there will be heard. Never rejects: the poll hears them too. */
  listen(shard: number): Promise<void>
  /** Starts looking for the reply to a call, until `forget`. */
  expect(shard: number, id: string): void
  forget(id: string): void
  close(): Promise<void>
}

/** `take` is called with each expected id that seems to have a reply; it fetches it. */
export function createReplies(store: Store, node: string, take: (shard: number, id: string) => void): Replies {
  const waiting = new Map<string, number>()
  const subscribed = new Map<number, Promise<void>>()
  const listening = listen(store, (isUp) => void (isUp && look()))
  const ticker = createTicker(look, POLL_MS)

  const hear = (id: string) => {
    const shard = waiting.get(id)
    if (shard !== undefined) take(shard, id)
  }

  /** Never rejects: a shard that fails is looked at again with the next, and holds up no other. */
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
      const heard = listening.subscribe(shard, store.key(shard, 'calls', 'wake-ups', node), hear).catch(() => {
        // Tried again with the next call; until then the poll has to do.
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
