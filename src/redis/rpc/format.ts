/** A reply as it travels between nodes: JSON, and an error that is one of ours stays one. */
import { toJson } from '../../contract/json.js'
import type { CallOutcome } from '../../contract/rpc.js'
import { Refusal, type RefusalCode } from '../../refusal.js'

/** Bytes of one reply: a result of a mebibyte, which is the most an action may answer, and what surrounds it. */
const REPLY_BYTES = 1_048_576 + 65_536

/** @throws Refusal `invalid_input` for what is not JSON, `payload_too_large`. */
export function encodeReply(outcome: CallOutcome): string {
  if (outcome.ok) return toJson({ ok: true, result: outcome.result ?? null }, REPLY_BYTES).text
  const { error } = outcome
  if (error instanceof Refusal)
    return toJson({ ok: false, refusal: error.code, detail: error.detail ?? null }, REPLY_BYTES).text
  // The fields of an Error are not enumerable: without this it would arrive as an empty object.
  if (error instanceof Error)
    return toJson({ ok: false, error: { ...error, name: error.name, message: error.message } }, REPLY_BYTES).text
  return toJson({ ok: false, error: error ?? null }, REPLY_BYTES).text
}

export function decodeReply(text: string): { ok: true; result: unknown } | { ok: false; error: unknown } {
  const reply: unknown = JSON.parse(text)
  if (reply === null || typeof reply !== 'object') throw new Refusal('unavailable', 'the stored reply is not an object')
  const { ok, result, error, refusal, detail } = reply as Record<string, unknown>
  if (ok === true) return { ok, result }
  if (typeof refusal !== 'string') return { ok: false, error }
  return { ok: false, error: new Refusal(refusal as RefusalCode, typeof detail === 'string' ? detail : undefined) }
}
