/** Who on this node wants to know when a session changes, wherever that happens. */
import { guardHook } from '../../async/hook.js'
import { shardOf } from '../store/keys.js'
import { listen as listenOn } from '../store/listener.js'
import type { Store } from '../store/store.js'

interface SessionWatchers {
  /** Tells whoever watches the session here. */
  notify(sessionId: string): void
  /** @returns a function that ends it. */
  watch(sessionId: string, changed: () => void): () => void
  close(): Promise<void>
}

/** @param node What this node signs its changes with: it has told its own watchers before word of them comes back. */
export function createSessionWatchers(store: Store, node: string): SessionWatchers {
  const watchers = new Map<string, Set<() => void>>()
  /** Sessions of which changes made elsewhere are heard. */
  const heard = new Set<string>()
  // Nobody knows what was missed: whoever watches reads again.
  const listening = listenOn(store, (isUp) => {
    if (isUp) for (const sessionId of [...watchers.keys()]) notify(sessionId)
  })

  function notify(sessionId: string) {
    for (const notify of [...(watchers.get(sessionId) ?? [])]) notify()
  }

  /** Brings the subscription in line with whether anybody watches now. */
  async function listen(sessionId: string): Promise<void> {
    const shard = shardOf(sessionId, await store.claimShards())
    const channel = store.key(shard, 'sessions', 'wake-ups', sessionId)
    if (!watchers.has(sessionId)) {
      heard.delete(sessionId)
      return listening.unsubscribe(channel)
    }
    await listening.subscribe(shard, channel, (changedBy) => {
      if (changedBy !== node) notify(sessionId)
    })
    // What was changed before was missed. Where it was heard already nothing was: whoever stops and begins anew with
    // each word would have no rest.
    if (heard.has(sessionId) || !watchers.has(sessionId)) return
    heard.add(sessionId)
    notify(sessionId)
  }

  return {
    notify,
    watch(sessionId, changed) {
      // One entry per call, so that the same function can watch twice and end once. What it throws is no business of
      // those who watch beside it, nor of whoever made the change.
      const own = guardHook(changed, store.onError)
      const known = watchers.get(sessionId)
      watchers.set(sessionId, (known ?? new Set()).add(own))
      if (!known) listen(sessionId).catch((error) => store.onError(error))
      return () => {
        const others = watchers.get(sessionId)
        if (!others?.delete(own) || others.size > 0) return
        watchers.delete(sessionId)
        listen(sessionId).catch((error) => store.onError(error))
      }
    },
    async close() {
      watchers.clear()
      heard.clear()
      await listening.close()
    },
  }
}
