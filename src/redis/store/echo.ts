/** A message that a listener sends to itself in one shard, to verify that the other channels of that shard work too. */
import type { Store } from './store.js'

/**
 * Number of consecutive probes that the store accepted but did not deliver after which the subscription counts as dead,
 * whatever the client reports.
 */
const MISSES_MAX = 3
/** A probe counts as evidence for this long after it arrived, in ms. */
const HEARD_MS = 5_000

export interface HealthProbe {
  readonly channel: string
  /** Whether a probe arrived recently. Only this shows that messages published in this shard are received. */
  readonly isHeard: boolean
  /** Whether several consecutive probes did not arrive. */
  readonly isLost: boolean
  /**
   * Sends a probe, and records whether the previous one arrived. Never rejects: an unreachable store says nothing about
   * the subscription.
   */
  send(): Promise<void>
  hear(message: string): void
  /** The channel was just subscribed, which counts as evidence. */
  begin(): void
  /** The connection was lost, and with it all evidence. */
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
        // Only after the store accepted the probe: while nothing can be sent, the last probe counts as missed only
        // once.
        misses = sent > heard ? misses + 1 : 0
        sent = number
      } catch {
        // A probe that could not be sent does not count.
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
