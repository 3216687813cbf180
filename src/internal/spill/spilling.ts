/** Moves large payloads of a message history to a spill store, with time limits for a slow store. */

import { raceAbort } from '../async/abort.js'
import { limitTime, runWithin } from '../async/deadline.js'
import type { HistoryMessage, SpillStore } from '../contract/history.js'
import { utf8Length } from '../contract/ids.js'
import type { Json } from '../contract/json.js'
import { HYDRATION_BYTES } from '../contract/limits.js'
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

// Loads externalised payloads back into the messages of one history response, bounded in bytes, time and concurrency.

/** Maximum bytes of all hydrated payloads in one response. */
const ANSWER_BYTES = 8 * HYDRATION_BYTES
/** Concurrent reads of the spill store: enough to hide its latency, few enough not to overload it. */
const CONCURRENCY = 8

type Outcome = Pick<HistoryMessage, 'payload'> & { hydration: 'hydrated' | 'missing' | 'error' }

/**
 * Returns `messages` with their externalised payloads where available. When the byte budget is short, newer messages
 * get it first. Payloads that do not arrive within `withinMs` are marked `error`, so a slow store costs a payload,
 * never the response.
 */
export async function hydrate(
  messages: readonly HistoryMessage[],
  spill: SpillStore,
  { signal, withinMs }: { signal: AbortSignal; withinMs: number },
): Promise<HistoryMessage[]> {
  const hydrated = [...messages]
  const wanted: number[] = []
  let budget = ANSWER_BYTES
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as HistoryMessage
    const { externalized } = message
    if (!externalized) continue
    if (externalized.bytes > HYDRATION_BYTES || externalized.bytes > budget) {
      hydrated[i] = { ...message, externalized: { ...externalized, hydration: 'too_large' } }
      continue
    }
    budget -= externalized.bytes
    wanted.push(i)
  }
  if (wanted.length === 0) return hydrated
  const late = () => new Error(`no payload within ${withinMs} ms`)
  const ended = limitTime({ ms: withinMs, late, signal })
  const worker = async () => {
    for (let i = wanted.shift(); i !== undefined; i = wanted.shift()) {
      const message = messages[i] as HistoryMessage
      const externalized = message.externalized as NonNullable<HistoryMessage['externalized']>
      const { payload, hydration } = await fetchPayload(spill, externalized, ended.signal)
      hydrated[i] = { ...message, payload, externalized: { ...externalized, hydration } }
    }
  }
  try {
    await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  } finally {
    ended.clear()
  }
  return hydrated
}

async function fetchPayload(
  spill: SpillStore,
  { ref, bytes }: { ref: string; bytes: number },
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    signal.throwIfAborted()
    const text = await raceAbort(spill.get(ref, { signal, maxBytes: HYDRATION_BYTES }), signal)
    if (text === null || text === undefined) return { payload: null, hydration: 'missing' }
    // A text of another length is not the stored payload, even if it parses.
    if (utf8Length(text) !== bytes) return { payload: null, hydration: 'error' }
    return { payload: JSON.parse(text) as Json, hydration: 'hydrated' }
  } catch {
    return { payload: null, hydration: 'error' }
  }
}
