/** The one error of the application's end: what the relay refused, or that it did not answer. */

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

  constructor(code: string, status: number | null, options?: ErrorOptions) {
    super(status === null ? code : `${code} (${status})`, options)
    this.code = code
    this.status = status
  }
}

/** For a relay that did not answer in time. */
export const late = () => new RelayError('timeout', null)
