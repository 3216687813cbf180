/** The subscription: one session's event stream, kept alive until it ends for good. */
import { onAbort, raceAbort } from '../async/abort.js'
import { sleep } from '../async/timer.js'
import { parseObject, UNEXPECTED } from '../relay-client/answer.js'
import { RETRY_DEFAULT_MS, reconnectDelay } from './backoff.js'
import { createEventStreamDecoder, type StreamEvent } from './event-stream.js'
import { isEnd, isGap, isReady, isSiteEvent, type Subscriber } from './frames.js'
import { CooperativeSiteError, toError } from './problem.js'
import type { Send } from './send.js'

// The heartbeat of a relay that has not named its own.
const HEARTBEAT_DEFAULT_MS = 15_000
// Two heartbeats may be late; after two and a half without a byte the connection is taken for dead.
const HEARTBEATS_MISSED = 2.5
// Beyond this a timer overflows and fires at once.
const HEARTBEAT_MAX_MS = 600_000
// What else a stream carries is a newer relay's affair.
const FRAMES: ReadonlySet<string> = new Set(['site_event', 'gap', 'ready', 'end'])
// An id travels back as a header: anything else would make every further request throw.
const ID = /^[\x21-\x7e]{1,256}$/

/** Statuses after which asking again may help: the host is busy, restarting, or behind a proxy that lost it. */
const isPassing = (status: number) => status >= 500 || status === 408 || status === 429

/** As an uncaught error is: for `window.onerror` where there is one, else for the console. */
function throwUncaught(error: unknown): void {
  if (typeof reportError === 'function') reportError(error)
  else console.error(error)
}

/**
 * Listens until `signal` aborts or the stream ends for good; then it resolves.
 *
 * @throws CooperativeSiteError when the relay refuses the stream (401, 403, 404 and every other answer that asking
 * again would not change), redirects it, or answers with something that is not an event stream.
 */
export async function subscribe(send: Send, subscriber: Subscriber, signal: AbortSignal): Promise<void> {
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

  /** One connection, from the request to its last byte. Rejects when it was lost. */
  async function connect(): Promise<void> {
    const connection = new AbortController()
    const forget = onAbort(signal, () => connection.abort(signal.reason))
    let watchdog: ReturnType<typeof setTimeout> | undefined
    const restartWatchdog = () => {
      clearTimeout(watchdog)
      watchdog = setTimeout(() => connection.abort(), heartbeatMs * HEARTBEATS_MISSED)
    }

    function dispatch({ type, data, id }: StreamEvent): void {
      if (connection.signal.aborted) return
      const frame = parseObject(data)
      if (frame !== undefined && ID.test(id)) lastEventId = id
      if (type === 'site_event' && isSiteEvent(frame)) notify(subscriber.onEvent, frame)
      else if (type === 'gap' && isGap(frame)) notify(subscriber.onGap, frame)
      else if (type === 'ready' && isReady(frame)) {
        failures = 0
        if (frame.heartbeat_ms > 0) heartbeatMs = Math.min(frame.heartbeat_ms, HEARTBEAT_MAX_MS)
        notify(subscriber.onReady, frame)
      } else if (type === 'end' && isEnd(frame)) {
        final = frame.reason !== 'shutdown'
        notify(subscriber.onEnd, frame)
        connection.abort()
      } else if (frame === undefined || FRAMES.has(type)) throwUncaught(new CooperativeSiteError(UNEXPECTED, null))
    }

    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
    try {
      restartWatchdog()
      // A `fetch` of the host's own need not listen to the signal.
      const response = await raceAbort(
        send('events', {
          headers: { accept: 'text/event-stream', ...(lastEventId && { 'last-event-id': lastEventId }) },
          signal: connection.signal,
        }),
        connection.signal,
      )
      if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
        const error = await raceAbort(toError(response), connection.signal)
        final = !isPassing(response.status)
        throw error
      }
      reader = response.body?.getReader()
      const text = new TextDecoder()
      const decode = createEventStreamDecoder({ onEvent: dispatch, onRetry: (ms) => (retryMs = ms) })
      while (reader) {
        const { done, value } = await raceAbort(reader.read(), connection.signal)
        if (done) return
        decode(text.decode(value, { stream: true }))
        restartWatchdog()
      }
    } finally {
      clearTimeout(watchdog)
      forget()
      connection.abort()
      reader?.cancel().catch(() => {})
    }
  }

  while (!signal.aborted) {
    try {
      await connect()
    } catch (error) {
      if (final && error instanceof CooperativeSiteError && !signal.aborted) {
        notify(subscriber.onEnd, { reason: 'refused', error })
        throw error
      }
    }
    if (final) return
    await sleep(reconnectDelay(retryMs, failures++, Math.random()), signal)
  }
}
