/** JSON values as they enter and leave: checked for shape, bounded in depth and size, frozen, fingerprinted. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { utf8Length } from './ids.js'
import { JSON_DEPTH, METADATA_BYTES } from './limits.js'

/** Anything that JSON can carry. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** A JSON object. */
export type JsonObject = { [key: string]: Json }

/** Any JSON value from an inspector. Depth and size are limited when it is serialised, not here. */
export const JsonValue = z.unknown() as unknown as z.ZodType<Json>

/**
 * A JSON object from an inspector: keys and values are passed on. An object that changes itself when serialised is
 * refused.
 */
export const JsonRecord = z
  .record(z.string(), JsonValue)
  .refine(({ toJSON }) => typeof toJSON !== 'function', 'must not have its own toJSON')

/** Host-supplied metadata of a record, limited in size. */
export const HostMetadata = JsonRecord.refine((value) => {
  try {
    return toJson(value, METADATA_BYTES).bytes > 0
  } catch {
    return false
  }
}, `JSON of at most ${METADATA_BYTES} bytes`)

const isObject = (value: unknown): value is object => value !== null && typeof value === 'object'

/**
 * Counts the objects and arrays in the text of `value`; `undefined` if it nests deeper than `depth`. A shared object
 * counts for each reference but is visited once per level: a few that refer to each other can stand for billions.
 * Iterative, because a depth of 100,000 must not overflow the stack.
 */
function countNested(value: unknown, depth: number): number | undefined {
  let level = new Map(isObject(value) ? [[value, 1]] : [])
  let count = 0
  for (let d = 0; level.size > 0; d++) {
    if (d === depth) return undefined
    const next: typeof level = new Map()
    for (const [node, times] of level) {
      count += times
      for (const child of Object.values(node)) if (isObject(child)) next.set(child, (next.get(child) ?? 0) + times)
    }
    level = next
  }
  return count
}

/** Whether `value` nests deeper than `depth` levels. */
export const isDeeperThan = (value: unknown, depth: number): boolean => countNested(value, depth) === undefined

/**
 * `value` as JSON text.
 *
 * @throws Refusal `invalid_input` for what JSON cannot carry (cycles, BigInt, nesting over 32 levels),
 * `payload_too_large` for a text over `maxBytes`.
 */
export function toJson(value: unknown, maxBytes: number): { text: string; bytes: number } {
  const count = countNested(value, JSON_DEPTH)
  if (count === undefined) throw new Refusal('invalid_input', `nested deeper than ${JSON_DEPTH} levels`)
  // Each takes two brackets, so an oversized value is refused before serialising it.
  if (2 * count > maxBytes) throw new Refusal('payload_too_large', `more than ${maxBytes} bytes`)
  let text: string
  try {
    text = JSON.stringify(value ?? null)
  } catch (cause) {
    throw new Refusal('invalid_input', 'must be a JSON value', { cause })
  }
  // Functions and symbols have no JSON text.
  if (text === undefined) throw new Refusal('invalid_input', 'must be a JSON value')
  const bytes = utf8Length(text)
  if (bytes > maxBytes) throw new Refusal('payload_too_large', `${bytes} bytes, at most ${maxBytes}`)
  return { text, bytes }
}

/** Whether JSON can represent `value` unchanged: dates and class instances would arrive as something else. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Array.isArray(value)
}

/**
 * Deep-freezes `value`, so that a record handed out cannot change. Non-JSON values are left alone: bytes cannot be
 * frozen, and class instances belong to their owner. Iterative, because stored values may nest as deep as their length
 * allows.
 */
export function deepFreeze<T>(value: T): T {
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const one = pending.pop()
    if (!isObject(one) || !isPlain(one) || Object.isFrozen(one)) continue
    Object.freeze(one)
    for (const child of Object.values(one)) if (isObject(child)) pending.push(child)
  }
  return value
}

/** The keys of an object in order. */
function keysOf(value: JsonObject): string[] {
  const members = Object.keys(value)
  // Most are in order, and to sort is dearer than to look.
  if (members.some((key, i) => i > 0 && key < (members[i - 1] as string))) members.sort()
  return members
}

/** A text that is equal for equal values and for no others. Strings stand in it as they are: to escape large ones is slow. */
export function identityText(value: Json): string {
  if (typeof value === 'string') return `${value.length}"${value}`
  if (value === null || typeof value !== 'object') return String(value)
  let text = ''
  if (Array.isArray(value)) {
    for (const one of value) text += `${identityText(one)},`
    return `[${text}]`
  }
  for (const key of keysOf(value)) text += `${key.length}"${key}${identityText(value[key] as Json)},`
  return `{${text}}`
}

/** `value` as JSON with the keys of every object in order: equal values give equal texts. */
export function canonicalJson(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null)
  let text = ''
  for (const key of keysOf(value)) text += `${text && ','}${JSON.stringify(key)}:${canonicalJson(value[key])}`
  return `{${text}}`
}
