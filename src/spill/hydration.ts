/** Brings externalised payloads back into the messages of one history answer, bounded in bytes, time and concurrency. */
import { raceAbort } from '../async/abort.js'
import { limitTime } from '../async/time-limit.js'
import type { HistoryMessage, SpillStore } from '../contract/history.js'
import { utf8Length } from '../contract/ids.js'
import type { Json } from '../contract/json.js'
import { HYDRATION_BYTES } from '../contract/limits.js'

/** Bytes of all hydrated payloads of one answer together. */
const ANSWER_BYTES = 8 * HYDRATION_BYTES
/** Reads of the spill store at once: enough to hide its latency, too few to flood it. */
const CONCURRENCY = 8

type Outcome = Pick<HistoryMessage, 'payload'> & { hydration: 'hydrated' | 'missing' | 'error' }

/**
 * `messages` with their externalised payloads, as far as they come. When bytes are short the newest have them. What
 * did not come in `withinMs` says `error`, so that a slow store costs a payload and never the answer.
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
    // A text of another length is not the one that was put, even where it still parses.
    if (utf8Length(text) !== bytes) return { payload: null, hydration: 'error' }
    return { payload: JSON.parse(text) as Json, hydration: 'hydrated' }
  } catch {
    return { payload: null, hydration: 'error' }
  }
}
