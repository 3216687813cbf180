/** The invocation: one allowed action of the session, asked for once. */
import type { Invocation, InvocationError } from '../contract/invocations.js'
import type { Json, JsonObject } from '../contract/json.js'
import {
  type Check,
  codeOf,
  type FieldError,
  fieldErrorsOf,
  type HeaderFields,
  isOneOf,
  isRecordOf,
  isRedirect,
  isText,
  messageOf,
  nullable,
  readObject,
  toSegment,
  UNEXPECTED,
} from '../relay-client/wire.js'

// The one error of the browser client: what the relay refused, or why nothing can be said.

/** What went wrong, in words a program can act on. */
export class CooperativeSiteError extends Error {
  override readonly name = 'CooperativeSiteError'
  /**
   * The problem code of the relay, e.g. `session_not_found` or `action_not_allowed`; or the client's own:
   * `unreachable` (no answer), `redirected` (never followed), `unexpected_answer` (not what a relay sends).
   */
  readonly code: string
  /** The HTTP status, or `null` where there was no answer. */
  readonly status: number | null
  /** `unknown`: the action may or may not have run. */
  readonly outcome: 'unknown' | undefined
  /** What in the request was not valid: the first eight, where the relay said so. The message has the first of them. */
  readonly errors: readonly FieldError[] | undefined

  constructor(
    code: string,
    status: number | null,
    outcome?: 'unknown',
    options: ErrorOptions & { errors?: readonly FieldError[] | undefined } = {},
  ) {
    const { errors } = options
    super(messageOf(code, status, errors), options)
    this.code = code
    this.status = status
    this.outcome = outcome
    this.errors = errors
  }
}

// A problem is at most 2 KiB and a result at most 1 MiB; beyond this it is not an answer of a relay.
const ANSWER_BYTES = 2_097_152

/** The JSON object that `response` carries, or `undefined` when it carries anything else or is cut short. */
const readAnswer = (response: Response): Promise<Record<string, unknown> | undefined> =>
  readObject(response, ANSWER_BYTES).catch(() => undefined)

/**
 * The error that an answer other than 200 is. In a browser a redirect that was not followed has no status.
 *
 * @param unsaid The outcome where the answer leaves it open and the relay has said nothing: for a call that may have run.
 */
export async function toError(response: Response, unsaid?: 'unknown'): Promise<CooperativeSiteError> {
  const { status } = response
  if (isRedirect(response)) {
    await response.body?.cancel()
    return new CooperativeSiteError('redirected', status || null)
  }
  const problem = await readAnswer(response)
  // A success is no refusal, whatever it carries; and whoever stands in between may fail after the relay has been asked.
  const isOpen = response.ok || (status >= 500 && !isText(problem?.code))
  const outcome = problem?.outcome === 'unknown' ? 'unknown' : isOpen ? unsaid : undefined
  return new CooperativeSiteError(codeOf(problem), status, outcome, { errors: fieldErrorsOf(problem) })
}

export interface InvokeOptions {
  /** Hangs up, which cancels the call at the relay. */
  signal?: AbortSignal | undefined
  /** Makes it safe to ask again: the same key and parameters are the same call (10 minutes). */
  idempotencyKey?: string | undefined
  /** How long the relay waits for the application, 1 to 120,000 ms. @default the relay's, 30,000 */
  timeoutMs?: number | undefined
}

// Whatever was parsed is JSON; only that it is there can be missing.
const isJson = (value: unknown): value is Json => value !== undefined

const isInvocation: Check<Invocation> = isRecordOf<Invocation>({
  invocation_id: isText,
  action: isText,
  status: isOneOf('succeeded', 'failed'),
  result: isJson,
  error: nullable(isRecordOf<InvocationError>({ code: isText, message: nullable(isText) })),
  started_at: isText,
  finished_at: isText,
})

/**
 * Invokes `action` once; nothing is retried.
 *
 * @returns the relay's answer; `status: 'failed'` means that the application said no.
 * @throws CooperativeSiteError with the relay's code. `outcome: 'unknown'`: it may have run. An abort rejects with the
 * signal's reason.
 */
export async function invoke(
  send: Send,
  action: string,
  parameters: JsonObject | undefined,
  { signal = new AbortController().signal, idempotencyKey, timeoutMs }: InvokeOptions = {},
): Promise<Invocation> {
  const path = `actions/${toSegment('action', action)}`
  const body = JSON.stringify({ parameters, timeout_ms: timeoutMs })
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  // An empty one too: the relay refuses it, while without a key the action would run twice.
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  let response: Response
  try {
    response = await send(path, { method: 'POST', headers, body, signal })
  } catch (cause) {
    signal.throwIfAborted()
    throw new CooperativeSiteError('unreachable', null, 'unknown', { cause })
  }
  if (response.status !== 200) {
    const error = await toError(response, 'unknown')
    signal.throwIfAborted()
    throw error
  }
  const answer = await readAnswer(response)
  signal.throwIfAborted()
  if (!isInvocation(answer)) throw new CooperativeSiteError(UNEXPECTED, 200, 'unknown')
  return answer
}

// How both operations of the client reach their session at the relay.

/** Headers for every request, or a function that is asked before each: a token may be renewed between two. */
export type ClientHeaders = HeaderFields | (() => HeaderFields | Promise<HeaderFields>)

/** Sends a request to a path below the session. A redirect is an answer, never a way. */
export type Send = (
  path: string,
  request: { method?: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
) => Promise<Response>

export function createSend(sessionUrl: string, fetch: typeof globalThis.fetch, headers: ClientHeaders): Send {
  return async (path, { headers: own, ...request }) => {
    const sent = new Headers(typeof headers === 'function' ? await headers() : headers)
    for (const [name, value] of Object.entries(own)) sent.set(name, value)
    return fetch(`${sessionUrl}/${path}`, { ...request, headers: sent, redirect: 'manual', cache: 'no-store' })
  }
}
