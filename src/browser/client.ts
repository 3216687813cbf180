/** The browser client of a cooperative session: subscribe to events and invoke actions over HTTP. */

import { sleep } from '../internal/async/timer.js'
import { ANYTHING, checkOptions, FUNCTION, required, type Shape, TEXT } from '../internal/contract/checks.js'
import type { GapReason, SiteEvent } from '../internal/contract/event-bus.js'
import type { Invocation } from '../internal/contract/invocations.js'
import type { Json, JsonObject } from '../internal/contract/json.js'
import {
  RETRY_DEFAULT_MS,
  readEventStream,
  reconnectDelay,
  type StreamEvent,
} from '../internal/relay-client/event-stream.js'
import {
  BASE_URL_OR_PATH,
  type ClientHeaders,
  isName,
  isNumber,
  isOneOf,
  isRecordOf,
  isText,
  nullable,
  parseObject,
  toBase,
  toSegment,
  UNEXPECTED,
} from '../internal/relay-client/wire.js'
import { CooperativeSiteError, createSend, type InvokeOptions, invoke, type Send, toError } from './invoke.js'

// The frames of a session's event stream, as a subscriber receives them.

/** The stream lives. Nothing from before is replayed: refetch what you show. */
export interface ReadyFrame {
  /** Id of the subscription. */
  subscription_id: string
  /** Id of the session. */
  session_id: string
  /** Id of the site. */
  site_id: string
  /** Events that wait for this subscriber before its oldest are dropped. */
  queue_limit: number
  /** Always `false`: events before the connection are not replayed. */
  replay: false
  /** Interval of heartbeats, in ms. */
  heartbeat_ms: number
}

/** Events were lost. The numbers are exact, or `null` if unknown. Refetch what you show. */
export interface GapFrame {
  /** Why events are missing. */
  reason: GapReason
  /** Number of missing events; `null` if unknown. */
  dropped: number | null
  /** Number of events missed since the stream began; `null` if unknown. */
  dropped_total: number | null
  /** Sequence number of the first missing event; `null` if unknown. */
  first_seq: number | null
  /** Sequence number of the last missing event; `null` if unknown. */
  last_seq: number | null
}

/** Why a stream ended. After `shutdown` the client reconnects automatically; every other reason is final. */
export type EndFrame =
  | { reason: 'session_closed' | 'session_expired' | 'policy_revoked' | 'shutdown'; error?: undefined }
  /** The relay refused the stream, for good. */
  | { reason: 'refused'; error: CooperativeSiteError }

/** Callbacks of a subscription. A callback that throws is reported as an uncaught error, and the stream continues. */
export interface Subscriber {
  /** An invalidation or notification, never the state itself: refetch the resource that it names. */
  onEvent(event: SiteEvent): void
  /** Called when events were missed: fetch the current state again. */
  onGap?: ((gap: GapFrame) => void) | undefined
  /** Called at the start and after each reconnection. */
  onReady?: ((ready: ReadyFrame) => void) | undefined
  /** Called when the relay has ended the stream for good. */
  onEnd?: ((end: EndFrame) => void) | undefined
}

const isSiteEvent = isRecordOf<SiteEvent>({
  event_id: isText,
  name: isText,
  site_id: isText,
  seq: isNumber,
  published_at: isText,
  data: (value): value is Json => value !== undefined,
  trace: (value): value is string | undefined => value === undefined || isText(value),
})

const isGap = isRecordOf<GapFrame>({
  reason: isName,
  dropped: nullable(isNumber),
  dropped_total: nullable(isNumber),
  first_seq: nullable(isNumber),
  last_seq: nullable(isNumber),
})

const isReady = isRecordOf<ReadyFrame>({
  subscription_id: isText,
  session_id: isText,
  site_id: isText,
  queue_limit: isNumber,
  replay: isOneOf(false),
  heartbeat_ms: isNumber,
})

const isEnd = isRecordOf<Pick<Exclude<EndFrame, { reason: 'refused' }>, 'reason'>>({
  reason: isName,
})

// The subscription: one session's event stream, kept alive until it ends for good.

// The heartbeat of a relay that has not named its own.
const HEARTBEAT_DEFAULT_MS = 15_000
// Unknown frames of a newer relay are ignored.
const FRAMES: ReadonlySet<string> = new Set(['site_event', 'gap', 'ready', 'end'])
// An id travels back as a header: anything else would make every further request throw.
const ID = /^[\x21-\x7e]{1,256}$/

/** Statuses worth retrying: the host is busy, restarting, or unreachable behind a proxy. */
const isPassing = (status: number) => status >= 500 || status === 408 || status === 429

/** Reports an uncaught error: to `window.onerror` if available, else to the console. */
function throwUncaught(error: unknown): void {
  if (typeof reportError === 'function') reportError(error)
  else console.error(error)
}

/**
 * Receives events until `signal` aborts or the stream ends for good; then it resolves.
 *
 * @throws CooperativeSiteError when the relay refuses the stream (401, 403, 404 and other responses that a retry would
 * not change), redirects it, or responds with something other than an event stream.
 */
async function subscribe(send: Send, subscriber: Subscriber, signal: AbortSignal): Promise<void> {
  let lastEventId = ''
  let retryMs = RETRY_DEFAULT_MS
  let heartbeatMs = HEARTBEAT_DEFAULT_MS
  let failures = 0
  let final = false

  function notify<Frame>(callback: ((frame: Frame) => void) | undefined, frame: Frame): void {
    try {
      callback?.(frame)
    } catch (error) {
      throwUncaught(error)
    }
  }

  function dispatch({ type, data, id }: StreamEvent, end: () => void): void {
    const frame = parseObject(data)
    if (frame !== undefined && ID.test(id)) lastEventId = id
    if (type === 'site_event' && isSiteEvent(frame)) notify(subscriber.onEvent, frame)
    else if (type === 'gap' && isGap(frame)) notify(subscriber.onGap, frame)
    else if (type === 'ready' && isReady(frame)) {
      failures = 0
      if (frame.heartbeat_ms > 0) heartbeatMs = frame.heartbeat_ms
      notify(subscriber.onReady, frame)
    } else if (type === 'end' && isEnd(frame)) {
      final = frame.reason !== 'shutdown'
      notify(subscriber.onEnd, frame)
      end()
    } else if (frame === undefined || FRAMES.has(type)) throwUncaught(new CooperativeSiteError(UNEXPECTED, null))
  }

  const connection = {
    send: (until: AbortSignal) =>
      send('events', {
        headers: { accept: 'text/event-stream', ...(lastEventId && { 'last-event-id': lastEventId }) },
        signal: until,
      }),
    toError: (response: Response) => toError(response),
    onEvent: dispatch,
    onRetry: (ms: number) => {
      retryMs = ms
    },
    heartbeatMs: () => heartbeatMs,
  }

  while (!signal.aborted) {
    try {
      await readEventStream(connection, signal)
    } catch (error) {
      if (error instanceof CooperativeSiteError && !isPassing(error.status ?? 0) && !signal.aborted) {
        notify(subscriber.onEnd, { reason: 'refused', error })
        throw error
      }
    }
    if (final) return
    await sleep(reconnectDelay(retryMs, failures++, Math.random()), signal)
  }
}

/** Options of `createCooperativeSiteClient`. */
export interface CooperativeSiteClientOptions {
  /** Where the relay's routes begin, with its prefix: `/relay`, `https://example.test/relay`. */
  baseUrl: string
  /** Id of the session. */
  sessionId: string
  /** @default the platform's */
  fetch?: typeof globalThis.fetch | undefined
  /**
   * Headers for every request, e.g. the viewer's token; a function is called before each request. Cookies are sent to
   * the page's own origin.
   */
  headers?: ClientHeaders | undefined
}

const OPTIONS: Shape<CooperativeSiteClientOptions> = {
  baseUrl: required(BASE_URL_OR_PATH),
  sessionId: required(TEXT),
  fetch: FUNCTION,
  headers: ANYTHING,
}

/** Known callback names, so that a misspelt one is refused: without `onEvent` a stream would be opened for nothing. */
const SUBSCRIBER = {
  onEvent: required(FUNCTION),
  onGap: FUNCTION,
  onReady: FUNCTION,
  onEnd: FUNCTION,
  signal: ANYTHING,
}

const INVOKE: Shape<InvokeOptions> = { signal: ANYTHING, idempotencyKey: TEXT, timeoutMs: ANYTHING, trace: TEXT }

/** Exactly two operations. It opens no session, renders nothing, recovers no missed event and interprets no payload. */
export interface CooperativeSiteClient {
  /**
   * Receives the session's events until `signal` aborts, reconnecting with jittered backoff.
   *
   * @returns a promise that resolves when the stream has ended for good (`onEnd` gets the reason) or was aborted. It
   * rejects with `CooperativeSiteError` when the relay refuses (401, 403, 404 …) or redirects; `onEnd` is called then,
   * too, so the promise may be ignored.
   */
  subscribe(subscription: Subscriber & { signal?: AbortSignal | undefined }): Promise<void>
  /**
   * Invokes one allowed action, once.
   *
   * @returns the relay's 200 response; `status: 'failed'` means that the application refused or failed.
   * @throws CooperativeSiteError with `code`, `status` and, if the action may have run, `outcome: 'unknown'`.
   */
  invoke(action: string, parameters?: JsonObject, options?: InvokeOptions): Promise<Invocation>
}

/**
 * Creates the viewer's client of one session. Redirects are never followed, because credentials would be forwarded.
 *
 * @throws TypeError for a session id that is not one path segment.
 *
 * @example
 * ```ts
 * import { createCooperativeSiteClient } from 'relayscope/browser'
 *
 * const site = createCooperativeSiteClient({ baseUrl: '/relay', sessionId: 'session-1' })
 * const left = new AbortController()
 * site.subscribe({ onReady: refetch, onGap: refetch, onEvent: refetch, signal: left.signal })
 * await site.invoke('add_note', { text: 'milk' })
 *
 * function refetch() {}
 * ```
 */
export function createCooperativeSiteClient(options: CooperativeSiteClientOptions): CooperativeSiteClient {
  checkOptions(options, OPTIONS)
  const { baseUrl, sessionId, fetch = globalThis.fetch, headers = {} } = options
  const sessionUrl = `${toBase(baseUrl)}/sessions/${toSegment('sessionId', sessionId)}`
  const send = createSend(sessionUrl, fetch, headers)
  return {
    subscribe(given) {
      checkOptions(given, SUBSCRIBER)
      const { signal = new AbortController().signal, ...subscriber } = given
      const ended = subscribe(send, subscriber, signal)
      // Callers that only use `onEnd` must not get an unhandled rejection.
      ended.catch(() => {})
      return ended
    },
    async invoke(action, parameters, invokeOptions = {}) {
      checkOptions(invokeOptions, INVOKE)
      return invoke(send, action, parameters, invokeOptions)
    },
  }
}
