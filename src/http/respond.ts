/** How an answer is sent: the headers that every answer of ours carries, the body, and the `Response` of both. */
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
 * The bytes of an answer that goes on. The next chunk is asked for when the last one was taken; whoever takes no more
 * calls `return`, at any time, and a `next` that waits then ends.
 */
export type Chunks = AsyncIterator<Uint8Array<ArrayBuffer>, undefined>

/** An answer before it becomes a `Response`, which some hosts do not need. */
export interface HttpReply {
  status: number
  headers: Record<string, string>
  /**
   * The whole text, for HEAD too: who sends it adds `content-length`, and leaves the body out for HEAD. Or chunks, or
   * nothing at all.
   */
  body: string | Chunks | null
}

/** An answer whose text is at hand. */
export interface TextReply extends HttpReply {
  body: string
}

/** A JSON answer. */
export function jsonReply(status: number, text: string, headers: Record<string, string> = {}): TextReply {
  return { status, headers: { 'content-type': JSON_TYPE, ...SECURITY_HEADERS, ...headers }, body: text }
}

/** The answer to whoever has it already: 304, with the tag that says so. */
export const notModified = (etag: string): HttpReply => ({
  status: 304,
  headers: { ...SECURITY_HEADERS, etag },
  body: null,
})

/** An answer without a body. */
export const emptyReply = (status: number): HttpReply => ({ status, headers: SECURITY_HEADERS, body: null })

// A store that is back after a second is found by the next request; a longer wait would only delay the operator.
const RETRY_AFTER_S = '1'

/** The answer for `code`, as RFC 9457 has it. */
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

/** `reply` as a `Response`. For HEAD the headers are those of the GET, and the body is left out. */
export function toResponse({ status, headers, body }: HttpReply, head = false): Response {
  if (body === null) return new Response(null, { status, headers })
  if (typeof body !== 'string') return new Response(toStream(body), { status, headers })
  const length = encoder.encode(body).byteLength
  // The text and not its bytes: Node makes a Response of a string at a third of the cost.
  return new Response(head ? null : body, { status, headers: { ...headers, 'content-length': String(length) } })
}
