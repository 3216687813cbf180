/** Validates inputs of facilities. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { unknownName } from './checks.js'

/** An abort signal of any realm, recognised by its methods. */
export const Signal = z.custom<AbortSignal>((value) => {
  const { aborted, addEventListener, removeEventListener } = Object(value)
  return typeof aborted === 'boolean' && [addEventListener, removeEventListener].every((f) => typeof f === 'function')
}, 'must be an AbortSignal')

/**
 * Declares the object that a host passes to a call. A field that it does not have is refused by name, so that a mistyped
 * one does not pass for one that was left out.
 *
 * @example
 * const ClaimInput = inputObject({ user_id: Id, message_id: Id })
 */
export const inputObject = <S extends z.core.$ZodShape>(shape: S): z.ZodObject<S, z.core.$strict> =>
  z.strictObject(shape, {
    error: ({ code, keys, path = [] }) =>
      code === 'unrecognized_keys'
        ? unknownName('field', path.map((part) => `${String(part)}.`).join(''), keys[0] as string, Object.keys(shape))
        : undefined,
  })

/**
 * Returns `value` as `schema` reads it.
 *
 * @throws Refusal `invalid_input`; its detail names the field and the rule, never the value of a field.
 */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const { issues } = read.error
  const unknown = issues.find(({ code }) => code === 'unrecognized_keys')
  if (unknown) throw new Refusal('invalid_input', unknown.message)
  const [issue] = issues
  throw new Refusal('invalid_input', `${issue?.path.map(String).join('.') || 'input'}: ${issue?.message}`)
}
