/** The one error of the application's end: what the relay refused, or that it did not answer. */
import { codeOf, isRedirect } from '../relay-client/answer.js'
import { type FieldError, fieldErrorsOf, messageOf } from '../relay-client/field-errors.js'

/** Why a relay did not do what it was asked. */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /**
   * The problem code of the relay, e.g. `stale_instance`, `unauthenticated`, `owner_mismatch`; or `unreachable` and
   * `timeout` (no answer), `redirected` (never followed), `unexpected_answer` (not what a relay sends).
   */
  readonly code: string
  /** The HTTP status, or `null` where there was no answer: the relay may or may not have taken it in. */
  readonly status: number | null
  /** What in the request was not valid: the first eight, where the relay said so. The message has the first of them. */
  readonly errors: readonly FieldError[] | undefined

  constructor(code: string, status: number | null, options?: ErrorOptions, errors?: readonly FieldError[]) {
    super(messageOf(code, status, errors), options)
    this.code = code
    this.status = status
    this.errors = errors
  }
}

/** For a relay that did not answer in time. */
export const late = () => new RelayError('timeout', null)

/** The error that an answer is which is not the wanted one. */
export function toError(
  answer: { status: number; body: Record<string, unknown> | undefined },
  fallback?: string,
): RelayError {
  const { status, body } = answer
  const code = isRedirect(answer) ? 'redirected' : codeOf(body, fallback)
  return new RelayError(code, status || null, {}, fieldErrorsOf(body))
}
