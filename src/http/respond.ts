/** How an answer becomes a `Response`: the headers that every answer of ours carries, and the body that is sent. */
import { PROBLEMS, type ProblemCode, type ProblemExtra, toProblem } from './problem.js'

const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const encoder = new TextEncoder()

/** A JSON answer. For HEAD the headers are those of the GET, and the body is left out. */
export function jsonResponse(
  status: number,
  text: string,
  { head = false, headers = {}, contentType = 'application/json; charset=utf-8' }: JsonResponseOptions = {},
): Response {
  const bytes = encoder.encode(text)
  return new Response(head ? null : bytes, {
    status,
    headers: {
      'content-type': contentType,
      'content-length': String(bytes.byteLength),
      ...SECURITY_HEADERS,
      ...headers,
    },
  })
}

export interface JsonResponseOptions {
  /** Leave the body out. @default false */
  head?: boolean
  headers?: Record<string, string>
  contentType?: string
}

// A store that is back after a second is found by the next request; a longer wait would only delay the operator.
const RETRY_AFTER_S = '1'

/** The answer for `code`, as RFC 9457 has it. */
export function problemResponse(code: ProblemCode, extra: ProblemExtra = {}, head = false): Response {
  const retry: Record<string, string> = code === 'inspector_unavailable' ? { 'retry-after': RETRY_AFTER_S } : {}
  return jsonResponse(PROBLEMS[code][0], JSON.stringify(toProblem(code, extra)), {
    head,
    contentType: 'application/problem+json',
    headers: { ...retry, ...extra.headers },
  })
}
