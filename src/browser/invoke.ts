/** Invokes one allowed action of the session, without retries. */
import type { Invocation, InvocationError } from '../internal/contract/invocations.js'
import type { Json, JsonObject } from '../internal/contract/json.js'
import {
  type Check,
  type ClientHeaders,
  codeOf,
  type FieldError,
  fieldErrorsOf,
  isOneOf,
  isRecordOf,
  isRedirect,
  isText,
  messageOf,
  nullable,
  readObject,
  toSegment,
  UNEXPECTED,
} from '../internal/relay-client/wire.js'

// The one error class of the browser client.

/** The relay refused a request, or the outcome is unknown. `code` is machine-readable. */
export class CooperativeSiteError extends Error {
  override readonly name = 'CooperativeSiteError'
  /**
   * The relay's problem code, e.g. `session_not_found` or `action_not_allowed`; or a code of the client: `unreachable`
   * (no response), `redirected` (redirects are never followed), `unexpected_answer` (not a relay response).
   */
  readonly code: string
  /** The HTTP status, or `null` without a response. */
  readonly status: number | null
  /** `unknown`: the action may or may not have run. */
  readonly outcome: 'unknown' | undefined
  /** Invalid request fields, at most eight, if the relay named them. The error message contains the first. */
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

// A problem is at most 2 KiB and a result at most 1 MiB; anything larger is not a relay response.
const ANSWER_BYTES = 2_097_152

/** The JSON object that `response` carries, or `undefined` when it carries anything else or is cut short. */
const readAnswer = (response: Response): Promise<Record<string, unknown> | undefined> =>
  readObject(response, ANSWER_BYTES).catch(() => undefined)

/**
 * Converts a response other than 200 to an error. In a browser an unfollowed redirect has no status.
 *
 * @param unsaid The outcome to use if the response does not tell it: `unknown` for a call that may have run.
 */
export async function toError(response: Response, unsaid?: 'unknown'): Promise<CooperativeSiteError> {
  const { status } = response
  if (isRedirect(response)) {
    await response.body?.cancel()
    return new CooperativeSiteError('redirected', status || null)
  }
  const problem = await readAnswer(response)
  // A 2xx response is not a refusal, whatever its body; and a proxy may fail after the relay has received the request.
  const isOpen = response.ok || (status >= 500 && !isText(problem?.code))
  const outcome = problem?.outcome === 'unknown' ? 'unknown' : isOpen ? unsaid : undefined
  return new CooperativeSiteError(codeOf(problem), status, outcome, { errors: fieldErrorsOf(problem) })
}

/** Options of one call. */
export interface InvokeOptions {
  /** Hangs up, which cancels the call at the relay. */
  signal?: AbortSignal | undefined
  /** Makes retries safe: the same key with the same parameters is the same call for 10 minutes. */
  idempotencyKey?: string | undefined
  /** How long the relay waits for the application, 1 to 120,000 ms. @default the relay's, 30,000 */
  timeoutMs?: number | undefined
  /** W3C `traceparent` of your trace: the relay shows it with the call. @default none */
  trace?: string | undefined
}

// A parsed value is always JSON; it can only be missing.
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
 * Invokes `action` once, without retries.
 *
 * @returns the relay's response; `status: 'failed'` means that the application refused or failed.
 * @throws CooperativeSiteError with the relay's code. `outcome: 'unknown'`: the action may have run. An abort rejects
 * with the signal's reason.
 */
export async function invoke(
  send: Send,
  action: string,
  parameters: JsonObject | undefined,
  { signal = new AbortController().signal, idempotencyKey, timeoutMs, trace }: InvokeOptions = {},
): Promise<Invocation> {
  const path = `actions/${toSegment('action', action)}`
  const body = JSON.stringify({ parameters, timeout_ms: timeoutMs, trace })
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

/** Sends a request to a path below the session. A redirect is returned, never followed. */
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
