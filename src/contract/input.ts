/** Validates inputs of facilities. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'

/** An abort signal of any realm, recognised by its methods. */
export const Signal = z.custom<AbortSignal>((value) => {
  const { aborted, addEventListener, removeEventListener } = Object(value)
  return typeof aborted === 'boolean' && [addEventListener, removeEventListener].every((f) => typeof f === 'function')
}, 'must be an AbortSignal')

/**
 * `value` as `schema` reads it, unknown keys dropped.
 *
 * @throws Refusal `invalid_input`; its detail names the field and the rule, never the value.
 */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const issue = read.error.issues[0]
  throw new Refusal('invalid_input', `${issue?.path.map(String).join('.') || 'input'}: ${issue?.message}`)
}
