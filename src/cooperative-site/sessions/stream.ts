/**
 * One viewer's event stream. It pulls from its subscription, so a slow reader loses events but uses no extra memory.
 */
import {
  type EndReason,
  type EventGap,
  type EventRun,
  type GapFrame,
  positionText,
  type ReadyFrame,
  SiteEvent,
  type SiteEventBus,
  type StreamPosition,
  type Subscription,
  type TakeEvents,
} from '../../internal/contract/event-bus.js'
import type { StreamState } from '../../internal/contract/subscriptions.js'
import { type Chunks, encodeFrame, HEARTBEAT_FRAME } from '../../internal/http/respond.js'
import type { Grant, GrantHolder } from './grants.js'

type OnError = (error: unknown) => void

// Maximum bytes per write, unless a single event is larger: a burst needs one write, and a stalled viewer holds no
// more.
const CHUNK_LENGTH = 65_536

const encoder = new TextEncoder()

/** Neighbouring events of a run as one chunk, and where the next one starts. Without bytes: the first is not an event. */
interface EventChunk {
  bytes: Uint8Array<ArrayBuffer> | null
  next: number
}

// Keyed by run, which viewers at the same position share; an encoding lives as long as its run.
const encoded = new WeakMap<readonly SiteEvent[], Map<number, EventChunk>>()

/** Formats a position as the `id` of a frame. */
const toEventId = positionText

/** The position that a `Last-Event-ID` names, or `null` for anything that we would not have sent. */
function parseEventId(id: string): StreamPosition | null {
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
 * Encodes the events of a run from index `from`: at most 64 KiB, or a single event.
 *
 * @param onError Called once for each invalid event of the run.
 */
function eventChunk(
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

/** How long a client waits before it reconnects, in milliseconds. */
const RETRY_MS = 5_000
// Spreads the reconnects after a shutdown over this much more time.
const SHUTDOWN_JITTER_MS = 5_000

const HEARTBEAT = encoder.encode(HEARTBEAT_FRAME)

type Bytes = Uint8Array<ArrayBuffer>
type Taken = IteratorResult<Bytes, undefined>

const DONE: Taken = { done: true, value: undefined }

interface SessionStreamOptions {
  bus: SiteEventBus
  /** The canonical stream of the site. */
  topic: string
  session_id: string
  site_id: string
  subscription_id: string
  lastEventId: string | null
  heartbeatMs: number
  now: () => number
  hold(holder: GrantHolder): Grant
  /**
   * Its signal aborts when the client disconnects. Kept as long as the stream: a collected Request no longer aborts its
   * signal.
   */
  request: { readonly signal: AbortSignal }
  onError?: ((error: unknown) => void) | undefined
  onEnd(): void
}

/** A stream that is being read. */
export interface SessionStream {
  /** Read by one reader, one chunk at a time. */
  frames: Chunks
  /** Writes the reason and ends the stream. */
  end(reason: EndReason): void
  /** The stream's state: events waiting for the reader, events dropped, and the time since the last read. */
  state(): Omit<StreamState, 'last_taken_at'> & { taken_ms_ago: number | null }
  /** Writes a heartbeat when the reader waits and nothing else was written for long enough. */
  tick(): void
}

/** The gap of a reconnecting client, as far as the positions tell; `undefined` if they are equal. */
function resumeGap(last: string, current: StreamPosition): EventGap | undefined {
  const seen = parseEventId(last)
  if (seen?.epoch !== current.epoch || seen.seq > current.seq)
    return { type: 'gap', reason: 'resume', dropped: null, first_seq: null, last_seq: null }
  if (seen.seq === current.seq) return undefined
  const dropped = current.seq - seen.seq
  return { type: 'gap', reason: 'resume', dropped, first_seq: seen.seq + 1, last_seq: current.seq }
}

function readyFrame(options: SessionStreamOptions, start: StreamPosition): string {
  const { bus, session_id, site_id, subscription_id, heartbeatMs } = options
  const data: ReadyFrame = {
    subscription_id,
    session_id,
    site_id,
    queue_limit: bus.queueSize,
    replay: false,
    heartbeat_ms: heartbeatMs,
  }
  return encodeFrame({ event: 'ready', id: toEventId(start), retry: RETRY_MS, data })
}

type StreamChunks = ReturnType<typeof createStreamChunks>

/** What a stream writes: the opening, then the events of its subscription, with a gap for those that were dropped. */
function createStreamChunks(options: SessionStreamOptions, subscription: Subscription) {
  const { lastEventId, onError } = options
  const start = subscription.position
  const missed = lastEventId === null ? undefined : resumeGap(lastEventId, start)
  // Events of a bus of the host's own that could not be written.
  let skipped = 0
  // Events beyond the last write, from a bus that does not limit its runs.
  let rest: EventRun | undefined
  let opening: string | undefined = readyFrame(options, start) + (missed ? gapFrame(missed, start) : '')

  function dropped(): number {
    return (missed?.dropped ?? 0) + skipped + subscription.dropped
  }

  function gapFrame({ reason, dropped: count, first_seq, last_seq }: EventGap, behind: StreamPosition): string {
    const data: GapFrame = { reason, dropped: count, dropped_total: dropped(), first_seq, last_seq }
    return encodeFrame({ event: 'gap', id: toEventId(behind), data })
  }

  /** The chunk as bytes; a gap for an event that is not one. */
  function bytesOf({ bytes, next }: EventChunk, events: readonly SiteEvent[]): Bytes {
    if (bytes !== null) return bytes
    skipped++
    const seq: unknown = events[next - 1]?.seq
    const at = Number.isSafeInteger(seq) ? (seq as number) : null
    const { epoch, seq: behind } = subscription.position
    const gap = { type: 'gap', reason: 'link_lost', dropped: 1, first_seq: at, last_seq: at } as const
    return encoder.encode(gapFrame(gap, { epoch, seq: at ?? behind }))
  }

  return {
    /**
     * Returns the next bytes for the reader, if any. Other events stay in the subscription, which drops the oldest beyond
     * its limit.
     */
    next(): Bytes | undefined {
      if (opening !== undefined) {
        const bytes = encoder.encode(opening)
        opening = undefined
        return bytes
      }
      let bytes: Bytes | undefined
      const encode: TakeEvents = (events, from) => {
        const chunk = eventChunk(events, from, subscription.position.epoch, onError)
        bytes = bytesOf(chunk, events)
        return chunk.next - from
      }
      const taken = rest ?? subscription.take(encode)
      if (taken?.type === 'gap') return encoder.encode(gapFrame(taken, subscription.position))
      if (taken === undefined || bytes) return bytes
      const chunk = eventChunk(taken.events, 0, subscription.position.epoch, onError)
      rest = chunk.next < taken.events.length ? { type: 'run', events: taken.events.slice(chunk.next) } : undefined
      return bytesOf(chunk, taken.events)
    },

    /** Whether everything was written and the subscription is closed. */
    hasEnded: () => opening === undefined && rest === undefined && subscription.closed,
    discard() {
      rest = undefined
    },
    state() {
      const { position } = subscription
      // Events taken from the bus but not yet written come first.
      const held = rest?.events ?? []
      const sent = { epoch: position.epoch, seq: position.seq - held.length }
      return {
        pending: subscription.pending + held.length,
        dropped: dropped(),
        last_position: position.epoch === '' ? null : toEventId(sent),
      }
    },
  }
}

/** Opens the stream at the current position of its topic. Nothing is written before the reader pulls. */
export function openSessionStream(options: SessionStreamOptions): SessionStream {
  const { bus, topic, now, heartbeatMs, request, onError, onEnd } = options
  // The reader that waits.
  let taker: ((taken: Taken) => void) | undefined
  let farewell: Taken = DONE
  let over = false
  let wroteAt = now()
  let hasTaken = false

  const subscription = bus.subscribe(topic, { wake: flush })
  const holder: GrantHolder = { fresh: flush, ended: end }
  let chunks: StreamChunks
  let grant: Grant
  try {
    chunks = createStreamChunks(options, subscription)
    grant = options.hold(holder)
  } catch (error) {
    subscription.close()
    throw error
  }
  request.signal.addEventListener('abort', leave, { once: true })
  if (request.signal.aborted) leave()

  function give(taken: Taken): void {
    const waiting = taker
    taker = undefined
    waiting?.(taken)
  }

  function write(value: Bytes): void {
    wroteAt = now()
    hasTaken = true
    give({ done: false, value })
  }

  /** Writes one chunk if the reader is waiting, one is available, and the viewer still has access. */
  function flush() {
    if (over || !taker) return
    if (chunks.hasEnded()) return end('shutdown')
    // Until the grant is renewed everything stays in the subscription's queue.
    if (!grant.isFresh) return grant.refresh()
    try {
      const bytes = chunks.next()
      if (bytes) write(bytes)
    } catch (error) {
      // A bus of the host's own that failed, or an epoch that cannot be written.
      onError?.(error)
      end('shutdown')
    }
  }

  function end(reason: EndReason): void {
    if (over) return
    const retry = reason === 'shutdown' ? RETRY_MS + Math.floor(Math.random() * SHUTDOWN_JITTER_MS) : undefined
    release()
    farewell = { done: false, value: encoder.encode(encodeFrame({ event: 'end', data: { reason }, retry })) }
    if (taker) give(last())
  }

  function last(): Taken {
    const taken = farewell
    farewell = DONE
    return taken
  }

  /** The client disconnected; no final frame is written. */
  function leave(): Taken {
    release()
    give(DONE)
    return DONE
  }

  /** Lets go of everything; nothing is written afterwards but an `end`. */
  function release(): void {
    if (over) return
    over = true
    chunks.discard()
    request.signal.removeEventListener('abort', leave)
    subscription.close()
    grant.release(holder)
    onEnd()
  }

  return {
    frames: {
      next: () =>
        new Promise((resolve) => {
          if (over) return resolve(last())
          taker = resolve
          flush()
        }),
      return: async () => leave(),
    },
    end,
    state: () => ({ ...chunks.state(), taken_ms_ago: hasTaken ? Math.max(0, now() - wroteAt) : null }),
    tick() {
      if (!over && taker && now() - wroteAt >= heartbeatMs) write(HEARTBEAT)
    },
  }
}
