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

/** An answer before it becomes a `Response`, which some hosts do not need. */
export interface Reply {
  status: number
  headers: Record<string, string>
  /** The whole text; who sends it adds `content-length`, and leaves the body out for HEAD. */
  body: string
}

/** A JSON answer. */
export function jsonReply(status: number, text: string, headers: Record<string, string> = {}): Reply {
  return { status, headers: { 'content-type': JSON_TYPE, ...SECURITY_HEADERS, ...headers }, body: text }
}

/** `reply` as a `Response`. For HEAD the headers are those of the GET, and the body is left out. */
export function toResponse({ status, headers, body }: Reply, head = false): Response {
  const length = encoder.encode(body).byteLength
  // The text and not its bytes: Node makes a Response of a string at a third of the cost.
  return new Response(head ? null : body, { status, headers: { ...headers, 'content-length': String(length) } })
}

/** A JSON answer as a `Response`. */
export function jsonResponse(status: number, text: string, options: JsonResponseOptions = {}): Response {
  return toResponse(jsonReply(status, text, options.headers), options.head)
}

/** An answer without a body. */
export const emptyResponse = (status: number): Response => new Response(null, { status, headers: SECURITY_HEADERS })

export interface JsonResponseOptions {
  /** Leave the body out. @default false */
  head?: boolean
  headers?: Record<string, string>
}

// A store that is back after a second is found by the next request; a longer wait would only delay the operator.
const RETRY_AFTER_S = '1'

/** The answer for `code`, as RFC 9457 has it. */
export function problemReply(code: ProblemCode, extra: ProblemExtra = {}): Reply {
  const retry: Record<string, string> = PROBLEMS[code][0] === 503 ? { 'retry-after': RETRY_AFTER_S } : {}
  const headers = { 'content-type': PROBLEM_TYPE, ...retry, ...extra.headers }
  return jsonReply(PROBLEMS[code][0], JSON.stringify(toProblem(code, extra)), headers)
}

/** `problemReply` as a `Response`. */
export function problemResponse(code: ProblemCode, extra: ProblemExtra = {}, head = false): Response {
  return toResponse(problemReply(code, extra), head)
}
