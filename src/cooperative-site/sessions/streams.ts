/** All event streams of one relay: one timer for their heartbeats and permissions, and one end for a shutdown. */

import { createTicker, monotonic } from '../../internal/async/timer.js'
import type { SiteEventBus } from '../../internal/contract/event-bus.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import type { Principal } from '../../internal/contract/sessions.js'
import type { SubscriptionRegistry, ViewerStream } from '../../internal/contract/subscriptions.js'
import type { Chunks } from '../../internal/http/respond.js'
import { createShares } from '../actions/shares.js'
import { createSessionGrants, RECHECK_MS, type SessionGrantsOptions } from './grants.js'
import { openSessionStream, type SessionStream } from './stream.js'

interface SessionStreamsOptions extends SessionGrantsOptions {
  bus: SiteEventBus
  /** Registry of open streams, if any. */
  subscriptions: SubscriptionRegistry | undefined
  heartbeatMs: number
  /** Maximum streams per viewer, in all and per session. */
  streamsPerViewer: number
  streamsPerViewerInSession: number
  newId: () => string
}

/** A reserved slot for one stream. */
interface StreamPlace {
  /** Gives it back; twice is once. */
  release(): void
}

interface OpenStream {
  viewer: Principal
  session_id: string
  site_id: string
  topic: string
  lastEventId: string | null
  request: { readonly signal: AbortSignal }
  /** Given back when the stream ends. */
  place: StreamPlace
}

/**
 * Returns a function that reserves a slot before anything is opened. At the limit the new stream is refused and the
 * open ones stay: ending the oldest would let two reconnecting tabs end each other's streams forever. It throws a
 * Refusal `capacity_exceeded`.
 */
function createReserve({
  streamsPerViewer,
  streamsPerViewerInSession,
}: Pick<SessionStreamsOptions, 'streamsPerViewer' | 'streamsPerViewerInSession'>) {
  const ofViewers = createShares(streamsPerViewer, 'streams of the viewer are open')
  const inSessions = createShares(streamsPerViewerInSession, 'streams of the viewer are open in the session')
  return ({ user_id }: Principal, sessionId: string): StreamPlace => {
    const leaveViewer = ofViewers.take(user_id)
    try {
      const leaveSession = inSessions.take(JSON.stringify([user_id, sessionId]))
      return {
        release() {
          leaveViewer()
          leaveSession()
        },
      }
    } catch (error) {
      leaveViewer()
      throw error
    }
  }
}

export type SessionStreams = ReturnType<typeof createSessionStreams>

/** The streams of one relay. Without streams it keeps no timer. */
export function createSessionStreams(options: SessionStreamsOptions) {
  const { bus, subscriptions, heartbeatMs, newId, now, onError } = options
  const grants = createSessionGrants(options)
  const clock = monotonic(now)
  const streams = new Set<SessionStream>()
  // An open stream keeps the process alive.
  const ticker = createTicker(tick, Math.min(RECHECK_MS, heartbeatMs), true)
  let closed = false

  function tick(): void {
    grants.tick()
    for (const stream of streams) stream.tick()
  }

  /** Registers a stream. Errors of a custom registry are ignored. @returns the function that unregisters it. */
  function show(stream: ViewerStream): () => void {
    try {
      const end: unknown = subscriptions?.add(stream)
      return () => {
        try {
          if (typeof end === 'function') end()
        } catch (error) {
          onError?.(error)
        }
      }
    } catch (error) {
      onError?.(error)
      return () => {}
    }
  }

  function leave(stream: SessionStream | undefined): void {
    if (stream) streams.delete(stream)
    if (streams.size === 0) ticker.stop()
  }

  return {
    /** Streams that are open. */
    get size() {
      return streams.size
    },
    reserve: createReserve(options),
    /** A bus over several nodes must know the topic's position before a viewer receives `ready`. */
    prepare: async (topic: string): Promise<void> => bus.prepare?.(topic),
    /** Opens a stream for a viewer whose access was checked. */
    open({ viewer, place, ...asked }: OpenStream): Chunks {
      let stream: SessionStream | undefined
      let over = false
      let hide = () => {}
      const subscription_id = newId()
      stream = openSessionStream({
        ...asked,
        bus,
        heartbeatMs,
        now: clock,
        onError,
        subscription_id,
        hold: (holder) => grants.hold(holder, viewer, asked),
        onEnd() {
          over = true
          place.release()
          hide()
          leave(stream)
        },
      })
      const { state } = stream
      const { user_id } = viewer
      const { session_id, site_id } = asked
      if (!over) {
        streams.add(stream)
        hide = show({
          subscription_id,
          session_id,
          site_id,
          user_id,
          opened_at: toTimestamp(now()),
          state() {
            const { taken_ms_ago, ...stands } = state()
            return { ...stands, last_taken_at: taken_ms_ago === null ? null : toTimestamp(now() - taken_ms_ago) }
          },
        })
      }
      ticker.start()
      if (streams.size === 0) leave(undefined)
      if (closed) stream.end('shutdown')
      return stream.frames
    },
    /** Ends every stream: the clients come back, spread over a few seconds. */
    close(): void {
      closed = true
      for (const stream of [...streams]) stream.end('shutdown')
    },
  }
}
