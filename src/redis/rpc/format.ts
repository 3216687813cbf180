/**
 * How a pending call and its reply are stored, and read back: a reply is JSON, a refusal of ours stays one, and an Error arrives as
 * an Error.
 */
import * as z from 'zod'
import { toJson } from '../../contract/json.js'
import { type CallOutcome, PendingCall } from '../../contract/rpc.js'
import { Refusal, type RefusalCode } from '../../refusal.js'
import type { TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'

const StoredCall = PendingCall.omit({ age_ms: true, overdue: true }).extend({
  /** Its place among all calls, in every shard by the same measure. */
  seq: z.number().min(0).optional(),
  started_at: Millis,
  deadline_at: Millis,
})
export type StoredCall = z.infer<typeof StoredCall>

/** Reads the calls that `isShown` admits by whether they are overdue. */
const readerOf = (isShown: (overdue: boolean) => boolean): TableReader<PendingCall, StoredCall> => ({
  name: 'calls',
  idOf: ({ correlation_id }) => correlation_id,
  schema: StoredCall,
  indexes: ['user_id'],
  read({ seq: _, started_at, deadline_at, ...row }, now) {
    const overdue = deadline_at <= now
    if (!isShown(overdue)) return undefined
    return {
      ...row,
      started_at: timestampOf(started_at),
      deadline_at: timestampOf(deadline_at),
      age_ms: Math.max(0, now - started_at),
      overdue,
    }
  },
})

/** Calls within their deadline: the others' node has died, or is late, and a living one takes them away. */
export const CALLS = readerOf((overdue) => !overdue)
export const OVERDUE_CALLS = readerOf((overdue) => overdue)
export const ALL_CALLS = readerOf(() => true)

/** Bytes of one reply: a result of a mebibyte, which is the most an action may answer, and what surrounds it. */
const REPLY_BYTES = 1_048_576 + 65_536

/** @throws Refusal `invalid_input` for what is not JSON, `payload_too_large`. */
export function encodeReply(outcome: CallOutcome): string {
  if (outcome.ok) return toJson({ ok: true, result: outcome.result ?? null }, REPLY_BYTES).text
  const { error } = outcome
  if (error instanceof Refusal)
    return toJson({ ok: false, refusal: error.code, detail: error.detail ?? null }, REPLY_BYTES).text
  // Its name and message are not enumerable: without this it would arrive as an empty object. Earlier builds read `error` alone.
  if (error instanceof Error) {
    const fields = { ...error, name: error.name, message: error.message }
    return toJson({ ok: false, error: fields, is_error: true }, REPLY_BYTES).text
  }
  return toJson({ ok: false, error: error ?? null }, REPLY_BYTES).text
}

/** An Error with the fields that were stored of one; its stack is that of whoever reads it. */
function toError(fields: object): Error {
  const error = new Error()
  for (const [field, value] of Object.entries(fields)) {
    const enumerable = field !== 'name' && field !== 'message'
    // Defined, not assigned: a field may have any name, `__proto__` too.
    Object.defineProperty(error, field, { value, enumerable, configurable: true, writable: true })
  }
  return error
}

export function decodeReply(text: string): { ok: true; result: unknown } | { ok: false; error: unknown } {
  const reply: unknown = JSON.parse(text)
  if (reply === null || typeof reply !== 'object') throw new Refusal('unavailable', 'a stored reply must be an object')
  const { ok, result, error, refusal, detail, is_error } = reply as Record<string, unknown>
  if (ok === true) return { ok, result }
  if (is_error === true && error !== null && typeof error === 'object') return { ok: false, error: toError(error) }
  if (typeof refusal !== 'string') return { ok: false, error }
  return { ok: false, error: new Refusal(refusal as RefusalCode, typeof detail === 'string' ? detail : undefined) }
}
