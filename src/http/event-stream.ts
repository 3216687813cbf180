/** Writes server-sent events (WHATWG HTML, 9.2): values cannot break out of their frame. */
import type { Chunks, HttpReply } from './respond.js'

/** One frame. `data` is any JSON value; a frame without one only sets `retry`. */
interface EventFrame {
  event: string
  data: unknown
  /** Sent back by a reconnecting client as `Last-Event-ID`. */
  id?: string | undefined
  /** How long a client waits before it reconnects, in milliseconds. */
  retry?: number | undefined
}

// A line break would start another field; a NUL makes clients ignore an id; a lone surrogate does not survive UTF-8.
function checkField(name: string, value: string): string {
  if (/[\r\n\0]/.test(value) || !value.isWellFormed())
    throw new TypeError(`${name} must be well-formed Unicode without line breaks and NUL`)
  return value
}

/**
 * The frame as text. JSON escapes line breaks and lone surrogates, so that `data` is always one line.
 *
 * @throws TypeError for an event name that is empty, or an id or name with CR, LF, NUL or a lone surrogate, and for data
 * that JSON cannot carry.
 */
export function encodeFrame({ event, data, id, retry }: EventFrame): string {
  if (event === '') throw new TypeError('event must not be empty')
  const json: string | undefined = JSON.stringify(data)
  if (json === undefined) throw new TypeError('data must be a JSON value')
  return `${retry === undefined ? '' : `retry: ${retry}\n`}${id === undefined ? '' : `id: ${checkField('id', id)}\n`}event: ${checkField('event', event)}\ndata: ${json}\n\n`
}

/**
 * The frame of an event whose `json` is at hand: text that JSON has been made into, in one line.
 */
export const jsonFrame = (event: string, json: string): string =>
  `event: ${checkField('event', event)}\ndata: ${json}\n\n`

/** A comment: clients ignore it, connections are kept alive by it. */
export const HEARTBEAT_FRAME = ': \n\n'

/** The response of an event stream. Its headers tell proxies not to cache, transform or buffer it. */
export function eventStreamReply(frames: Chunks): HttpReply {
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-accel-buffering': 'no',
    },
    body: frames,
  }
}
