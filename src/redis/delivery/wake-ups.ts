/** How a node hears at once that there is something for it: a bell in every shard, which it also rings itself. */
import { STALE_MS } from '../../contract/delivery-rules.js'
import { listen } from '../store/listener.js'
import type { Store } from '../store/store.js'

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
  const bells = new Set<number>()
  const listening = listen(store.client, (isUp) => {
    if (isUp) for (const shard of bells) onCall(shard)
    else heard.clear()
  })
  let openedAt = 0

  const isFresh = (shard: number) => performance.now() - (heard.get(shard) ?? Number.NEGATIVE_INFINITY) <= STALE_MS
  const hasAll = (shards: number) => Array.from({ length: shards }, (_, shard) => shard).every(isFresh)

  function subscribe(shard: number) {
    bells.add(shard)
    const hear = (message: string) => {
      heard.set(shard, performance.now())
      if (message === 'call') onCall(shard)
    }
    listening.subscribe(store.key(shard, 'delivery', 'bell', boot), hear).then(
      () => heard.set(shard, performance.now()),
      (error) => store.report(error),
    )
  }

  return {
    isHeard: hasAll,
    listen(shards) {
      const isNew = bells.size < shards
      if (!isNew && (hasAll(shards) || performance.now() - openedAt <= STALE_MS)) return
      openedAt = performance.now()
      if (!isNew) return listening.renew()
      for (let shard = 0; shard < shards; shard++) if (!bells.has(shard)) subscribe(shard)
    },
    close: () => listening.close(),
  }
}
