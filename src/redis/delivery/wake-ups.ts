/** How a node hears at once that there is something for it: a channel in every shard. */
import { listen } from '../store/listener.js'
import type { Store } from '../store/store.js'

interface WakeUps {
  /** Whether it would be heard in all of `shards` shards: evidence, and not what the client believes of its link. */
  isHeard(shards: number): boolean
  /** Listens in all of `shards` shards. */
  listen(shards: number): void
  close(): Promise<void>
}

/** @param onCall Told of a shard in which something waits for this node. */
export function createWakeUps(
  store: Store,
  incarnation: string,
  onCall: (shard: number) => void,
  onError: (error: unknown) => void,
): WakeUps {
  /** By their shards. */
  const channels: string[] = []
  const listening = listen(store, (isUp) => {
    if (isUp) for (const shard of channels.keys()) onCall(shard)
  })

  return {
    isHeard: (shards) => channels.length >= shards && channels.every((channel) => listening.isHearing(channel)),
    listen(shards) {
      for (let shard = channels.length; shard < shards; shard++) {
        const channel = store.key(shard, 'delivery', 'wake-ups', incarnation)
        channels.push(channel)
        listening.subscribe(shard, channel, () => onCall(shard)).catch(onError)
      }
    },
    close: () => listening.close(),
  }
}
