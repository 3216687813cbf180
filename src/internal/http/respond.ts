/** Builds responses: common headers, body, and the `Response` object. */
import { PROBLEMS, type ProblemCode, type ProblemExtra, toProblem } from './problem.js'

const JSON_TYPE = 'application/json; charset=utf-8'
const PROBLEM_TYPE = 'application/problem+json'
const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const encoder = new TextEncoder()

/**
 * The chunks of a streaming response. The next one is requested after the previous was written; a consumer that stops
 * calls `return` at any time, which also ends a pending `next`.
 */
export type Chunks = AsyncIterator<Uint8Array<ArrayBuffer>, undefined>

/** A response before it becomes a `Response` object, which some hosts do not need. */
export interface HttpReply {
  /** HTTP status. */
  status: number
  /** HTTP headers, with lower-case names. */
  headers: Record<string, string>
  /**
   * The whole text, for HEAD too: who sends it adds `content-length`, and leaves the body out for HEAD. Or chunks, or
   * nothing at all.
   */
  body: string | Chunks | null
}

/** A response with its complete text. */
export interface TextReply extends HttpReply {
  /** The body as text. */
  body: string
}

/** Creates a JSON response. */
export function jsonReply(status: number, text: string, headers: Record<string, string> = {}): TextReply {
  return { status, headers: { 'content-type': JSON_TYPE, ...SECURITY_HEADERS, ...headers }, body: text }
}

/** Creates a 304 response with the current tag. */
export const notModified = (etag: string): HttpReply => ({
  status: 304,
  headers: { ...SECURITY_HEADERS, etag },
  body: null,
})

/** Creates a response without a body. */
export const emptyReply = (status: number): HttpReply => ({ status, headers: SECURITY_HEADERS, body: null })

// A store that is back after a second is found by the next request; a longer wait would only delay the operator.
const RETRY_AFTER_S = '1'

/** Creates the problem response for `code` (RFC 9457). */
export function problemReply(code: ProblemCode, extra: ProblemExtra = {}): TextReply {
  const retry: Record<string, string> = PROBLEMS[code][0] === 503 ? { 'retry-after': RETRY_AFTER_S } : {}
  const headers = { 'content-type': PROBLEM_TYPE, ...retry, ...extra.headers }
  return jsonReply(PROBLEMS[code][0], JSON.stringify(toProblem(code, extra)), headers)
}

function toStream(chunks: Chunks): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await chunks.return?.()
      },
    },
    // Nothing is pulled ahead of the reader: what waits must wait where it can be dropped.
    { highWaterMark: 0 },
  )
}

/** Converts `reply` to a `Response`. For HEAD the headers are those of GET, without the body. */
export function toResponse({ status, headers, body }: HttpReply, head = false): Response {
  if (body === null) return new Response(null, { status, headers })
  if (typeof body !== 'string') return new Response(toStream(body), { status, headers })
  const length = encoder.encode(body).byteLength
  // The text and not its bytes: Node makes a Response of a string at a third of the cost.
  return new Response(head ? null : body, { status, headers: { ...headers, 'content-length': String(length) } })
}

// Writes server-sent events (WHATWG HTML, 9.2): values cannot break out of their frame.

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
