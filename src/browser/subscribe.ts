/** The subscription: one session's event stream, kept alive until it ends for good. */
import { unlessAborted, whenAborted } from '../async/abort.js'
import { sleep } from '../async/timer.js'
import type { SiteEvent } from '../contract/event-bus.js'
import { RETRY_DEFAULT_MS, reconnectDelay } from './backoff.js'
import { createEventStreamDecoder, type StreamEvent } from './event-stream.js'
import type { EndFrame, GapFrame, ReadyFrame, Subscriber } from './frames.js'
import { CooperativeSiteError, toError } from './problem.js'
import type { Send } from './send.js'

// The heartbeat of a relay that has not named its own.
const HEARTBEAT_DEFAULT_MS = 15_000
// Two heartbeats may be late; after two and a half without a byte the connection is taken for dead.
const HEARTBEATS_MISSED = 2.5
// Beyond this a timer overflows and fires at once.
const HEARTBEAT_MAX_MS = 600_000
// An id travels back as a header: anything else would make every further request throw.
const ID = /^[\x21-\x7e]{1,256}$/

/** Statuses after which asking again may help: the host is busy, restarting, or behind a proxy that lost it. */
const isPassing = (status: number) => status >= 500 || status === 408 || status === 429

/** As an uncaught error is: for `window.onerror` where there is one, else for the console. */
function report(error: unknown): void {
  if (typeof reportError === 'function') reportError(error)
  else console.error(error)
}

/** The JSON object that a frame carries, or `undefined` when it carries anything else. */
function parseFrame(data: string): object | undefined {
  try {
    const frame: unknown = JSON.parse(data)
    return frame !== null && typeof frame === 'object' ? frame : undefined
  } catch {
    return undefined
  }
}

/**
 * Listens until `signal` aborts or the stream ends for good; then it resolves.
 *
 * @throws CooperativeSiteError when the relay refuses the stream (401, 403, 404 and every other answer that asking
 * again would not change), redirects it, or answers with something that is no event stream.
 */
export async function subscribe(send: Send, subscriber: Subscriber, signal: AbortSignal): Promise<void> {
  let lastEventId = ''
  let retryMs = RETRY_DEFAULT_MS
  let heartbeatMs = HEARTBEAT_DEFAULT_MS
  let failures = 0
  let final = false

  function tell<Frame>(callback: ((frame: Frame) => void) | undefined, frame: Frame): void {
    try {
      callback?.(frame)
    } catch (error) {
      report(error)
    }
  }

  /** One connection, from the request to its last byte. Rejects when it was lost. */
  async function connect(): Promise<void> {
    const connection = new AbortController()
    const forget = whenAborted(signal, () => connection.abort(signal.reason))
    let watchdog: ReturnType<typeof setTimeout> | undefined
    const lives = () => {
      clearTimeout(watchdog)
      watchdog = setTimeout(() => connection.abort(), heartbeatMs * HEARTBEATS_MISSED)
    }

    function dispatch({ type, data, id }: StreamEvent): void {
      if (connection.signal.aborted) return
      const frame = parseFrame(data)
      if (frame === undefined) {
        report(new CooperativeSiteError('unexpected_answer', null))
        return
      }
      if (ID.test(id)) lastEventId = id
      if (type === 'site_event') tell(subscriber.onEvent, frame as SiteEvent)
      else if (type === 'gap') tell(subscriber.onGap, frame as GapFrame)
      else if (type === 'ready') {
        failures = 0
        const ready = frame as ReadyFrame
        if (ready.heartbeat_ms > 0) heartbeatMs = Math.min(ready.heartbeat_ms, HEARTBEAT_MAX_MS)
        tell(subscriber.onReady, ready)
      } else if (type === 'end') {
        final = (frame as EndFrame).reason !== 'shutdown'
        tell(subscriber.onEnd, frame as EndFrame)
        connection.abort()
      }
    }

    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
    try {
      lives()
      // A `fetch` of the host's own need not listen to the signal.
      const response = await unlessAborted(
        send('events', {
          headers: { accept: 'text/event-stream', ...(lastEventId && { 'last-event-id': lastEventId }) },
          signal: connection.signal,
        }),
        connection.signal,
      )
      if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
        const error = await unlessAborted(toError(response), connection.signal)
        final = !isPassing(response.status)
        throw error
      }
      reader = response.body?.getReader()
      const text = new TextDecoder()
      const decode = createEventStreamDecoder({ onEvent: dispatch, onRetry: (ms) => (retryMs = ms) })
      while (reader) {
        const { done, value } = await unlessAborted(reader.read(), connection.signal)
        if (done) return
        decode(text.decode(value, { stream: true }))
        lives()
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
        tell(subscriber.onEnd, { reason: 'refused', error })
        throw error
      }
    }
    if (final) return
    await sleep(reconnectDelay(retryMs, failures++, Math.random()), signal)
  }
}
