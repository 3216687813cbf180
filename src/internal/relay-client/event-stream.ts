/** Reads `text/event-stream` (WHATWG HTML, 9.2.6) piece by piece, bounded, for the clients of a relay. */
import { onAbort, raceAbort } from '../async/abort.js'

/** One dispatched event of the stream. */
export interface StreamEvent {
  /** The `event` field; `message` if absent. */
  type: string
  data: string
  /** The last `id` of the stream so far. */
  id: string
}

interface EventStreamReader {
  onEvent(event: StreamEvent): void
  /** The `retry` field, in milliseconds. */
  onRetry(ms: number): void
}

// A relay takes 256 KiB of JSON per event, and escaping may grow it; more than this is not an event of a relay.
const EVENT_LENGTH = 2_097_152

/**
 * @returns a function that takes the next piece of decoded text.
 * @throws RangeError from that function for an event over `maxLength` characters.
 */
export function createEventStreamDecoder(
  { onEvent, onRetry }: EventStreamReader,
  maxLength = EVENT_LENGTH,
): (text: string) => void {
  let rest = ''
  let afterCarriageReturn = false
  let type = ''
  let data: string[] = []
  let length = 0
  let id = ''

  function readLine(line: string): void {
    if (line === '') {
      if (data.length > 0) onEvent({ type: type || 'message', data: data.join('\n'), id })
      type = ''
      data = []
      length = 0
      return
    }
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') {
      length += value.length + 1
      data.push(value)
    } else if (field === 'event') type = value
    else if (field === 'id' && !value.includes('\0')) id = value
    else if (field === 'retry' && /^\d+$/.test(value)) onRetry(Number(value))
  }

  return (text) => {
    // A line feed that opens a piece belongs to the carriage return that closed the one before.
    const lines = (afterCarriageReturn && text.startsWith('\n') ? text.slice(1) : text).split(/\r\n|\n|\r/)
    if (text !== '') afterCarriageReturn = text.endsWith('\r')
    // Only the new part is searched, so a long line that arrives in small pieces costs linear time.
    lines[0] = rest + lines[0]
    rest = lines.pop() as string
    for (const line of lines) readLine(line)
    if (rest.length + length > maxLength)
      throw new RangeError(`an event of the stream is longer than ${maxLength} characters`)
  }
}

// One connection, from its request to its last byte.

// Two heartbeats may be late; after two and a half without a byte the connection is taken for dead.
const HEARTBEATS_MISSED = 2.5
// A longer delay overflows the timer and fires immediately.
const HEARTBEAT_MAX_MS = 600_000

interface EventStreamConnection {
  /** Sends the request. */
  send(signal: AbortSignal): Promise<Response>
  /** Returns the error for a response that is not an event stream. */
  toError(response: Response): Promise<unknown>
  /** Called with each event. `end` ends the connection; nothing is received after it. */
  onEvent(event: StreamEvent, end: () => void): void
  onRetry(ms: number): void
  /** Returns the error for a relay that sends nothing any more. @default an `AbortError` */
  silent?(): unknown
  /** Returns the heartbeat interval of the relay in milliseconds, as far as it is known. */
  heartbeatMs(): number
}

/** Reads one event stream to its end. Rejects if it is refused or lost, and with the reason of `signal`. */
export async function readEventStream(options: EventStreamConnection, signal: AbortSignal): Promise<void> {
  const connection = new AbortController()
  const end = () => connection.abort()
  const forget = onAbort(signal, () => connection.abort(signal.reason))
  let watchdog: ReturnType<typeof setTimeout> | undefined
  const restartWatchdog = () => {
    clearTimeout(watchdog)
    watchdog = setTimeout(
      () => connection.abort(options.silent?.()),
      Math.min(options.heartbeatMs(), HEARTBEAT_MAX_MS) * HEARTBEATS_MISSED,
    )
  }

  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    restartWatchdog()
    // A `fetch` of the host's own need not listen to the signal.
    const response = await raceAbort(options.send(connection.signal), connection.signal)
    if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream'))
      throw await raceAbort(options.toError(response), connection.signal)
    reader = response.body?.getReader()
    const text = new TextDecoder()
    const decode = createEventStreamDecoder({
      onEvent: (event) => {
        if (!connection.signal.aborted) options.onEvent(event, end)
      },
      onRetry: options.onRetry,
    })
    while (reader) {
      const { done, value } = await raceAbort(reader.read(), connection.signal)
      if (done) return
      decode(text.decode(value, { stream: true }))
      restartWatchdog()
    }
  } finally {
    clearTimeout(watchdog)
    forget()
    end()
    reader?.cancel().catch(() => {})
  }
}

// Reconnect delay: not before the relay's `retry`, and not all viewers at once.

/** The wait before the relay has named one with `retry`. */
export const RETRY_DEFAULT_MS = 1_000
// A `retry` of 0 would cause a loop, and a longer delay than this overflows the timer into one.
const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 600_000
// Doubling ends here: a host that was away for an hour is found again within half a minute.
const BACKOFF_MAX_MS = 30_000
// Viewers that lost one host at one moment come back over half as much time again.
const JITTER = 0.5

/**
 * Returns the milliseconds until the next attempt: `retryMs` doubled for each failure since the last open stream, plus
 * up to half of it.
 *
 * @param random from 0 to below 1.
 */
export function reconnectDelay(retryMs: number, failures: number, random: number): number {
  const base = Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, retryMs))
  const wait = Math.max(base, Math.min(BACKOFF_MAX_MS, base * 2 ** failures))
  return wait * (1 + JITTER * random)
}
