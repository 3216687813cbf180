/** The parameters of an action: what a caller may send, and what the runtime adds behind it. */
import { RESERVED_PREFIX, SESSION_PARAMETER, SITE_PARAMETER } from '../contract/invocations.js'
import { deepFreeze, type JsonObject, toJson } from '../contract/json.js'
import { Refusal } from '../refusal.js'

// The bound of the body that brings them.
const PARAMETERS_BYTES = 262_144

/** Whether JSON says all of `value`: a date or a function in it would arrive as something else, or not at all. */
function isPlain(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (value === null || typeof value !== 'object') return typeof value !== 'function' && typeof value !== 'symbol'
  const prototype = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every(isPlain)
}

function hasPrototypeKey(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasPrototypeKey)
}

/**
 * A frozen copy of `given`, so that what was checked and approved is what is sent.
 *
 * @throws Refusal `invalid_parameters` unless it is a plain JSON object of at most 32 levels without a `__proto__` key
 * at any of them.
 */
export function parseParameters(given: unknown = {}): JsonObject {
  const refuse = (detail: string) => new Refusal('invalid_parameters', detail)
  if (given === null || typeof given !== 'object' || Array.isArray(given)) throw refuse('not an object')
  let copy: unknown
  let plain: boolean
  try {
    copy = JSON.parse(toJson(given, PARAMETERS_BYTES).text)
    plain = isPlain(given)
  } catch (cause) {
    throw new Refusal('invalid_parameters', 'not JSON within the bounds', { cause })
  }
  if (!plain) throw refuse('not a plain object')
  // Own keys of that name are harmless here and a prototype to whoever copies by assignment.
  if (copy === null || typeof copy !== 'object' || hasPrototypeKey(copy)) throw refuse('has a __proto__ key')
  return deepFreeze(copy as JsonObject)
}

/** @throws Refusal `reserved_parameter` for a name that only the runtime may set. */
export function refuseReserved(parameters: JsonObject): void {
  if (Object.keys(parameters).some((name) => name.startsWith(RESERVED_PREFIX))) throw new Refusal('reserved_parameter')
}

/** The parameters with the runtime's two, written last: whatever the caller sent, these are the runtime's. */
export function withReserved<T extends object>(parameters: T, sessionId: unknown, siteId: unknown): T & JsonObject {
  return Object.freeze({ ...parameters, [SESSION_PARAMETER]: sessionId, [SITE_PARAMETER]: siteId }) as T & JsonObject
}
