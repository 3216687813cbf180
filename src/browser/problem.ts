/** The one error of the browser client: what the relay refused, or why nothing can be said. */
import { codeOf, isRedirect, readObject } from '../relay-client/answer.js'
import { type FieldError, fieldErrorsOf, messageOf } from '../relay-client/field-errors.js'
import { isText } from '../relay-client/shape.js'

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
export const readAnswer = (response: Response): Promise<Record<string, unknown> | undefined> =>
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
