/** Moves large payloads of a message history to a spill store, with time limits for a slow store. */

import { runWithin } from '../async/time-limit.js'
import type { SpillStore } from '../contract/history.js'
import { Refusal } from '../refusal.js'

interface SpillingOptions {
  spill?: SpillStore | undefined
  inlineBytes: number
  /** Time limit for storing one payload, in milliseconds. */
  spillMs: number
}

interface Spilling {
  /** @throws Refusal `payload_too_large` without a store; `unavailable` when it failed or took too long: nothing was kept. */
  put(ref: string, text: string): Promise<void>
  /** Deletes a payload that no message refers to. Rejects where the store does. */
  remove(ref: string): Promise<void>
  /** The same without waiting: a store that fails to keeps an orphan. */
  discard(ref: string): void
}

export function createSpilling({ spill, inlineBytes, spillMs }: SpillingOptions): Spilling {
  const remove = async (ref: string) => spill?.delete(ref)
  const discard = (ref: string) => void remove(ref).catch(() => {})

  return {
    remove,
    discard,
    async put(ref, text) {
      if (!spill) throw new Refusal('payload_too_large', `over ${inlineBytes} bytes, and no spill store is configured`)
      let putting: Promise<void> | undefined
      const put = (signal: AbortSignal) => {
        putting = (async () => spill.put(ref, text, { signal }))()
        return putting
      }
      const late = () => new Refusal('unavailable', `not stored within ${spillMs} ms`)
      try {
        await runWithin(put, { ms: spillMs, late })
      } catch (cause) {
        // Discard now and again after the write has settled: an abandoned write may still arrive.
        discard(ref)
        putting?.then(
          () => discard(ref),
          () => {},
        )
        if (cause instanceof Refusal) throw cause
        throw new Refusal('unavailable', 'the spill store failed', { cause })
      }
    },
  }
}
