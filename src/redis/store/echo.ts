/** What a listener says to itself in one shard: it is as good as what others say in the other channels of that shard. */
import type { Store } from './store.js'

/** Echoes in a row that the store has sent and that did not come: whoever listens is deaf, whatever the client believes. */
const MISSES_MAX = 3
/** An echo that came within this time is evidence. */
const HEARD_MS = 5_000

export interface HealthProbe {
  readonly channel: string
  /** Whether it came of late: the one answer to whether what is said in this shard would be heard. */
  readonly isHeard: boolean
  /** Whether it has failed to come again and again. */
  readonly isLost: boolean
  /** Takes it in, and whether the last one came. Never rejects: a store that cannot be asked says nothing about who listens to it. */
  send(): Promise<void>
  hear(message: string): void
  /** Its channel has just been subscribed, which counts. */
  begin(): void
  /** The link is gone, and with it all evidence. */
  forget(): void
}

export function createEcho(store: Store, channel: string): HealthProbe {
  let [made, sent, heard, misses] = [0, 0, 0, 0]
  let heardAt = Number.NEGATIVE_INFINITY

  const begin = () => {
    heardAt = performance.now()
  }

  return {
    channel,
    get isHeard() {
      return performance.now() - heardAt <= HEARD_MS
    },
    get isLost() {
      return misses >= MISSES_MAX
    },
    async send() {
      const number = ++made
      try {
        await store.command(['SPUBLISH', channel, String(number)], channel)
        // Only now: while nothing can be sent the last one is missed once, and not again and again.
        misses = sent > heard ? misses + 1 : 0
        sent = number
      } catch {
        // The next one is asked for as if this had not been.
      }
    },
    hear(message) {
      heard = Math.max(heard, Number(message) || 0)
      begin()
    },
    begin,
    forget() {
      misses = 0
      heardAt = Number.NEGATIVE_INFINITY
    },
  }
}
