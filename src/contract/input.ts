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
 * Declares the object that a host passes to a call. `parseInput` refuses a field that it does not have by name, so that a
 * mistyped one does not pass for one that was left out.
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

/** Fields that say who a client is. A call that does not need one ignores it, so that a host can pass its record of a client. */
const IDENTITY = ['user_id', 'client_id', 'instance_id', 'client_type', 'connection_id']

/** Returns `value` without the fields of `IDENTITY` that `schema` does not have. */
function withoutIdentity(schema: z.ZodType, value: unknown): unknown {
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value
  const ignored = IDENTITY.filter((name) => name in value && !(name in schema.shape))
  if (ignored.length === 0) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => !ignored.includes(name)))
}

/**
 * Returns `value` as `schema` reads it.
 *
 * @throws Refusal `invalid_input`; its detail names the field and the rule, never the value of a field.
 */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(withoutIdentity(schema, value))
  if (read.success) return read.data
  const { issues } = read.error
  const unknown = issues.find(({ code }) => code === 'unrecognized_keys')
  if (unknown) throw new Refusal('invalid_input', unknown.message)
  const [issue] = issues
  throw new Refusal('invalid_input', `${issue?.path.map(String).join('.') || 'input'}: ${issue?.message}`)
}
