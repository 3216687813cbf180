/** Events of a site as bytes of an event stream: encoded once, sent to every viewer that is level. */
import { positionText, SiteEvent, type StreamPosition } from '../../contract/event-bus.js'
import { encodeFrame } from '../../http/event-stream.js'

type OnError = (error: unknown) => void

// What one write carries at most, unless one event alone is larger: a burst costs one write, and a viewer that stalls
// in the middle of it holds no more than this in bytes.
const CHUNK_LENGTH = 65_536

const encoder = new TextEncoder()

/** Neighbouring events of a run as one chunk, and where the next one starts. Without bytes: the first is not an event. */
export interface EventChunk {
  bytes: Uint8Array<ArrayBuffer> | null
  next: number
}

// By the run, which viewers that are level share; an encoding lives as long as its run.
const encoded = new WeakMap<readonly SiteEvent[], Map<number, EventChunk>>()

/** How a position stands in the `id` of a frame. */
export const toEventId = positionText

/** The position that a `Last-Event-ID` names, or `null` for anything that we would not have sent. */
export function parseEventId(id: string): StreamPosition | null {
  const at = id.lastIndexOf(':')
  const seq = id.slice(at + 1)
  if (at < 1 || !/^(0|[1-9][0-9]{0,15})$/.test(seq) || !Number.isSafeInteger(Number(seq))) return null
  return { epoch: id.slice(0, at), seq: Number(seq) }
}

function encodeChunk(events: readonly SiteEvent[], from: number, epoch: string, onError: OnError): EventChunk {
  let text = ''
  let next = from
  while (next < events.length && text.length < CHUNK_LENGTH) {
    try {
      const event = SiteEvent.parse(events[next])
      text += encodeFrame({ id: toEventId({ epoch, seq: event.seq }), event: 'site_event', data: event })
    } catch (error) {
      // Ours refuse such an event; a bus of the host's own may not. The readers see a gap in its place.
      if (text !== '') break
      onError(error)
      return { bytes: null, next: next + 1 }
    }
    next++
  }
  return { bytes: encoder.encode(text), next }
}

/**
 * The events of a run from index `from` on, at most 64 KiB of them or one event.
 *
 * @param onError Called once for each event of the run that is not one.
 */
export function eventChunk(
  events: readonly SiteEvent[],
  from: number,
  epoch: string,
  onError: OnError = () => {},
): EventChunk {
  const chunks = encoded.get(events) ?? new Map<number, EventChunk>()
  encoded.set(events, chunks)
  const chunk = chunks.get(from) ?? encodeChunk(events, from, epoch, onError)
  chunks.set(from, chunk)
  return chunk
}
