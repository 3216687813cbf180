/** How a node hears at once that there is something for it: a bell in every shard, which it also rings itself. */
import { STALE_MS } from '../../contract/delivery-rules.js'
import type { Store } from '../store/store.js'
import { openSubscriber, type Subscriber } from '../store/subscriber.js'

export interface DeliveryBell {
  /** Whether it was heard in all of `shards` shards of late: evidence, and not what the client believes of its link. */
  isHeard(shards: number): boolean
  /** Listens in all of `shards` shards; opens the connection anew where a bell has not been heard for long. */
  listen(shards: number): void
  close(): Promise<void>
}

/** @param onCall Told of a shard in which something waits for this node. */
export function createDeliveryBell(store: Store, boot: string, onCall: (shard: number) => void): DeliveryBell {
  /** When each shard was last heard, on the process's own clock; a subscription just made counts. */
  const heard = new Map<number, number>()
  const channels = new Map<string, number>()
  let subscriber: Subscriber | undefined
  let openedAt = 0

  const isFresh = (shard: number) => performance.now() - (heard.get(shard) ?? Number.NEGATIVE_INFINITY) <= STALE_MS
  const hasAll = (shards: number) => Array.from({ length: shards }, (_, shard) => shard).every(isFresh)

  function open(shards: number) {
    openedAt = performance.now()
    const own = openSubscriber({
      client: store.client,
      onMessage(channel, message) {
        const shard = channels.get(channel)
        if (shard === undefined) return
        heard.set(shard, performance.now())
        if (message === 'call') onCall(shard)
      },
      onLink(isUp) {
        if (isUp) for (const shard of channels.values()) onCall(shard)
        else heard.clear()
      },
    })
    subscriber = own
    for (let shard = 0; shard < shards; shard++) {
      const channel = store.key(shard, 'delivery', 'bell', boot)
      channels.set(channel, shard)
      own.subscribe(channel).then(
        () => {
          if (subscriber === own) heard.set(shard, performance.now())
        },
        (error) => store.report(error),
      )
    }
  }

  return {
    isHeard: hasAll,
    listen(shards) {
      if (subscriber && (hasAll(shards) || performance.now() - openedAt <= STALE_MS)) return
      void subscriber?.close()
      open(shards)
    },
    async close() {
      const own = subscriber
      subscriber = undefined
      await own?.close()
    },
  }
}
