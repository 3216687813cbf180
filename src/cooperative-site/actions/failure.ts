/** How an action fails in a way that its viewers may read. */
import { toReason } from '../../internal/contract/ids.js'
import type { InvocationError } from '../../internal/contract/invocations.js'
import { type Json, toJson } from '../../internal/contract/json.js'
import { Refusal, type RefusalCode } from '../../internal/refusal.js'

// A sentence for a person; more is a payload in the wrong place.
const MESSAGE_LENGTH = 1_024

/**
 * Thrown by a handler to fail with a message for viewers. Any other error reaches them as `handler_error` without a
 * message.
 *
 * @example
 * throw new ActionFailure('note_locked', 'Another user is editing this note')
 */
export class ActionFailure extends Error {
  override readonly name = 'ActionFailure'
  /** A low-cardinality name; anything else reads as `other`. */
  readonly code: string
  /** Message for viewers; `null` if there is none. */
  readonly publicMessage: string | null

  constructor(code: string, publicMessage: string | null = null) {
    super(publicMessage === null ? code : `${code}: ${publicMessage}`)
    this.code = toReason(code) as string
    this.publicMessage = publicMessage?.slice(0, MESSAGE_LENGTH).toWellFormed() ?? null
  }
}

/** Converts a handler's error for viewers: the message of an `ActionFailure`, otherwise only that it failed. */
export function toInvocationError(thrown: unknown): InvocationError {
  return thrown instanceof ActionFailure
    ? { code: thrown.code, message: thrown.publicMessage }
    : { code: 'handler_error', message: null }
}

// Refusals that leave open what happened.
const OPEN: ReadonlySet<RefusalCode> = new Set(['unavailable', 'timeout', 'cancelled'])

/** Whether the error is a final refusal: the same request again would be refused again, and nothing was done. */
export const isDefinite = (error: unknown): boolean => error instanceof Refusal && !OPEN.has(error.code)

// The result of an action as it can be kept and shown: a bounded JSON value, or the failure to be one.

// A result is displayed; larger data belongs in a resource that the viewer fetches.
/** Maximum size of a result as JSON. */
export const RESULT_BYTES = 1_048_576

/** Converts a result to JSON; `result_too_large` over 1 MiB, `handler_error` if it is not a JSON value. */
export function readResult(given: unknown): { ok: true; result: Json } | { ok: false; error: InvocationError } {
  try {
    const { text } = toJson(given, RESULT_BYTES)
    return { ok: true, result: JSON.parse(text) }
  } catch (error) {
    const tooLarge = error instanceof Refusal && error.code === 'payload_too_large'
    return { ok: false, error: { code: tooLarge ? 'result_too_large' : 'handler_error', message: null } }
  }
}
