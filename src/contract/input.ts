/** How a facility reads what a host hands it. */
import type * as z from 'zod'
import { Refusal } from '../refusal.js'

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
