/** The parameters of an action: caller-supplied values and the two that the runtime adds. */
import { utf8Length } from '../../internal/contract/ids.js'
import { RESERVED_PREFIX, SESSION_PARAMETER, SITE_PARAMETER } from '../../internal/contract/invocations.js'
import { isPlain, type Json, type JsonObject } from '../../internal/contract/json.js'
import { JSON_DEPTH } from '../../internal/contract/limits.js'
import { Refusal } from '../../internal/refusal.js'

// The bound of the body that brings them.
const PARAMETERS_BYTES = 262_144

// The same limit as for request bodies.
const CONTAINERS_MAX = 32_768

const refuse = (detail: string) => new Refusal('invalid_parameters', detail)

/** The remaining limits while a value is copied. */
interface Budget {
  containers: number
  /** An upper bound of the copied value's size as JSON. */
  bytes: number
}

/** Copies, checks and freezes in one pass. */
function copyPlain(value: unknown, depth: number, budget: Budget): Json {
  budget.bytes -= typeof value === 'string' ? value.length : Array.isArray(value) ? value.length : 1
  if (budget.bytes < 0) throw refuse(`more than ${PARAMETERS_BYTES} bytes`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value !== 'object' || !isPlain(value)) throw refuse('must be plain JSON')
  if (depth === JSON_DEPTH) throw refuse(`nested deeper than ${JSON_DEPTH} levels`)
  if (budget.containers-- === 0) throw refuse(`more than ${CONTAINERS_MAX} objects and lists`)
  if (Array.isArray(value)) {
    // Holes of an array are null in JSON.
    return Object.freeze(Array.from(value, (item) => copyPlain(item ?? null, depth + 1, budget))) as Json[]
  }
  const copy: JsonObject = {}
  for (const [key, child] of Object.entries(value)) {
    // Harmless here, but a prototype for code that copies by assignment.
    if (key === '__proto__') throw refuse('a key must not be __proto__')
    if (child !== undefined) copy[key] = copyPlain(child, depth + 1, budget)
  }
  return Object.freeze(copy)
}

/** @throws Refusal `invalid_parameters` for anything but an object: the one check without cost. */
export function requireObject(given: unknown = {}): void {
  if (given === null || typeof given !== 'object' || Array.isArray(given)) throw refuse('must be an object')
}

/**
 * Returns a frozen copy, so that the values that were checked and approved are the values that are sent.
 *
 * @throws Refusal `invalid_parameters` unless it is a plain JSON object of at most 32 levels, 32,768 objects and arrays
 * and 256 KiB without a `__proto__` key at any level.
 */
export function parseParameters(given: unknown = {}): JsonObject {
  requireObject(given)
  let copy: JsonObject
  try {
    copy = copyPlain(given, 0, { containers: CONTAINERS_MAX, bytes: PARAMETERS_BYTES }) as JsonObject
  } catch (cause) {
    // A getter of theirs may throw anything.
    if (cause instanceof Refusal) throw cause
    throw new Refusal('invalid_parameters', 'one of their getters throws', { cause })
  }
  const bytes = utf8Length(JSON.stringify(copy))
  if (bytes > PARAMETERS_BYTES) throw refuse(`${bytes} bytes, at most ${PARAMETERS_BYTES}`)
  return copy
}

/** @throws Refusal `reserved_parameter` for a name that only the runtime may set. */
export function refuseReserved(parameters: JsonObject): void {
  if (Object.keys(parameters).some((name) => name.startsWith(RESERVED_PREFIX))) throw new Refusal('reserved_parameter')
}

/**
 * Wraps the output of a parameter schema in a new frozen object. Nested values may belong to the application and are
 * left unchanged.
 *
 * @throws TypeError for anything but a plain object: reserved parameters cannot be added to an array or a class
 * instance.
 */
export function ownParameters(made: unknown): Readonly<Record<string, unknown>> {
  if (made === null || typeof made !== 'object' || Array.isArray(made) || !isPlain(made))
    throw new TypeError('A schema of parameters must return a plain object, not an array or a class instance')
  return Object.freeze({ ...made })
}

/** Adds the two reserved parameters last, so that values sent by the caller cannot replace them. */
export function withReserved<T extends object>(parameters: T, sessionId: unknown, siteId: unknown): T & JsonObject {
  return Object.freeze({ ...parameters, [SESSION_PARAMETER]: sessionId, [SITE_PARAMETER]: siteId }) as T & JsonObject
}
