/** What a viewer is told: the frames of a session's event stream, as its subscriber receives them. */
import type { GapReason, SiteEvent } from '../contract/event-bus.js'
import type { Json } from '../contract/json.js'
import { isNumber, isOneOf, isRecordOf, isText, isWord, nullable } from '../relay-client/shape.js'
import type { CooperativeSiteError } from './problem.js'

/** The stream lives. Nothing from before is replayed: refetch what you show. */
export interface ReadyFrame {
  subscription_id: string
  session_id: string
  site_id: string
  /** Events that wait for this subscriber before its oldest are dropped. */
  queue_limit: number
  replay: false
  heartbeat_ms: number
}

/** Events were lost; numbers are exact, or `null` where nobody knows. Refetch what you show. */
export interface GapFrame {
  reason: GapReason
  dropped: number | null
  dropped_total: number | null
  first_seq: number | null
  last_seq: number | null
}

/** Why a stream ended. After `shutdown` the client reconnects by itself; every other reason is final. */
export type EndFrame =
  | { reason: 'session_closed' | 'session_expired' | 'policy_revoked' | 'shutdown'; error?: undefined }
  /** The relay refused the stream, for good. */
  | { reason: 'refused'; error: CooperativeSiteError }

/** Who listens. A callback that throws is reported like an uncaught error, and the stream goes on. */
export interface Subscriber {
  /** An invalidation or notification, never the state itself: refetch the resource that it names. */
  onEvent(event: SiteEvent): void
  onGap?: ((gap: GapFrame) => void) | undefined
  /** Called at the start and after each reconnection. */
  onReady?: ((ready: ReadyFrame) => void) | undefined
  onEnd?: ((end: EndFrame) => void) | undefined
}

export const isSiteEvent = isRecordOf<SiteEvent>({
  event_id: isText,
  name: isText,
  site_id: isText,
  seq: isNumber,
  published_at: isText,
  data: (value): value is Json => value !== undefined,
})

export const isGap = isRecordOf<GapFrame>({
  reason: isWord,
  dropped: nullable(isNumber),
  dropped_total: nullable(isNumber),
  first_seq: nullable(isNumber),
  last_seq: nullable(isNumber),
})

export const isReady = isRecordOf<ReadyFrame>({
  subscription_id: isText,
  session_id: isText,
  site_id: isText,
  queue_limit: isNumber,
  replay: isOneOf(false),
  heartbeat_ms: isNumber,
})

export const isEnd = isRecordOf<Pick<Exclude<EndFrame, { reason: 'refused' }>, 'reason'>>({
  reason: isWord,
})
