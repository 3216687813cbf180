/** The closed vocabulary of "no": what any part of the library throws when it declines, without knowing HTTP. */

/** Every reason for which a facility, an inspector, a gate or a route declines. */
export type RefusalCode =
  // thrown by inspectors
  | 'invalid_identity'
  | 'invalid_cursor'
  | 'unavailable'
  | 'not_narrowable'
  // thrown by facilities
  | 'invalid_input'
  | 'stale_instance'
  | 'identity_conflict'
  | 'command_conflict'
  | 'capacity_exceeded'
  | 'payload_too_large'
  | 'timeout'
  | 'cancelled'
  | 'closed'
  // thrown by cooperative sites, sessions and the gate
  | 'forbidden'
  | 'unknown_site'
  | 'owner_mismatch'
  | 'invalid_transition'
  | 'generic_action_name'
  | 'event_name_not_allowed'
  | 'session_not_found'
  | 'session_not_active'
  | 'site_not_cooperative'
  | 'action_invocation_disabled'
  | 'action_not_allowed'
  | 'reserved_parameter'
  | 'invalid_parameters'
  | 'approval_denied'
  | 'approval_timeout'
  | 'connector_unavailable'
  | 'action_timeout'
  | 'application_disconnected'
  | 'idempotency_key_reused'
  | 'idempotency_in_progress'

/** What is known about a failed write: it was not run and never will be, or the outcome is unknown. */
export type WriteOutcome = 'not_run' | 'unknown'

/** Options of a `Refusal`. */
export interface RefusalOptions extends ErrorOptions {
  /** @default undefined: nothing is claimed, so that a reader is to take `unavailable` for `unknown` */
  outcome?: WriteOutcome
}

/**
 * An expected error with a code that callers can act on.
 *
 * `detail` is for logs and hooks only: no route sends it to a client, so an inspector may put a diagnosis there.
 * Absence is `null`, never a `Refusal`.
 *
 * @example
 * throw new Refusal('unavailable', 'the store did not answer within 200 ms')
 */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  /** Error code. */
  readonly code: RefusalCode
  /** More about the error, if known. */
  readonly detail: string | undefined
  /** For `unavailable`: whether the write may have run anyway. */
  readonly outcome: WriteOutcome | undefined

  constructor(code: RefusalCode, detail?: string, options?: RefusalOptions) {
    super(detail === undefined ? code : `${code}: ${detail}`, options)
    this.code = code
    this.detail = detail
    this.outcome = options?.outcome
  }
}

/**
 * Whether `error` guarantees that nothing was done and nothing will be: never sent, refused before it ran, or too late
 * to run. Any other store error leaves the outcome open.
 */
export function wasNotRun(error: unknown): boolean {
  return error instanceof Refusal && error.outcome === 'not_run'
}
