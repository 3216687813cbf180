/** Reads `text/event-stream` (WHATWG HTML, 9.2.6) piece by piece, bounded, for the subscription. */

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
