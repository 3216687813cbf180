/** The result of an action as it can be kept and shown: a bounded JSON value, or the failure to be one. */
import type { InvocationError } from '../../contract/invocations.js'
import { type Json, toJson } from '../../contract/json.js'
import { Refusal } from '../../refusal.js'

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
