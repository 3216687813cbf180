/** How an answer is sent: the headers that every answer of ours carries, the body, and the `Response` of both. */
import { PROBLEMS, type ProblemCode, type ProblemExtra, toProblem } from './problem.js'

const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const encoder = new TextEncoder()

/** An answer before it becomes a `Response`, which some hosts do not need. */
export interface Reply {
  status: number
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer> | null
}

/** A JSON answer. For HEAD the headers are those of the GET, and the body is left out. */
export function jsonReply(
  status: number,
  text: string,
  { head = false, headers = {}, contentType = 'application/json; charset=utf-8' }: JsonResponseOptions = {},
): Reply {
  const bytes = encoder.encode(text)
  return {
    status,
    headers: {
      'content-type': contentType,
      'content-length': String(bytes.byteLength),
      ...SECURITY_HEADERS,
      ...headers,
    },
    body: head ? null : bytes,
  }
}

export const toResponse = ({ status, headers, body }: Reply): Response => new Response(body, { status, headers })

/** `jsonReply` as a `Response`. */
export const jsonResponse = (...answer: Parameters<typeof jsonReply>): Response => toResponse(jsonReply(...answer))

export interface JsonResponseOptions {
  /** Leave the body out. @default false */
  head?: boolean
  headers?: Record<string, string>
  contentType?: string
}

// A store that is back after a second is found by the next request; a longer wait would only delay the operator.
const RETRY_AFTER_S = '1'

/** The answer for `code`, as RFC 9457 has it. */
export function problemReply(code: ProblemCode, extra: ProblemExtra = {}, head = false): Reply {
  const retry: Record<string, string> = code === 'inspector_unavailable' ? { 'retry-after': RETRY_AFTER_S } : {}
  return jsonReply(PROBLEMS[code][0], JSON.stringify(toProblem(code, extra)), {
    head,
    contentType: 'application/problem+json',
    headers: { ...retry, ...extra.headers },
  })
}

/** `problemReply` as a `Response`. */
export const problemResponse = (...problem: Parameters<typeof problemReply>): Response =>
  toResponse(problemReply(...problem))
