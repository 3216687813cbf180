/** JSON values as they enter and leave: checked for shape, bounded in depth and size, frozen, fingerprinted. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { utf8Length } from './ids.js'
import { JSON_DEPTH } from './limits.js'

/** Anything that JSON can carry. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** A JSON object. */
export type JsonObject = { [key: string]: Json }

/** Any JSON value as the answer of an inspector. Its depth and size are bounded where it is encoded, not here. */
export const JsonValue = z.unknown() as unknown as z.ZodType<Json>

/** A JSON object as the answer of an inspector: its values are passed on, its own keys are the host's. */
export const JsonRecord = z.record(z.string(), JsonValue)

/** Whether `value` nests deeper than `depth` levels. Iterative: a depth of 100,000 must not overflow the stack. */
export function isDeeperThan(value: unknown, depth: number): boolean {
  let level: unknown[] = [value]
  for (let d = 0; level.length > 0; d++) {
    const next: unknown[] = []
    for (const node of level) {
      if (node === null || typeof node !== 'object') continue
      if (d === depth) return true
      for (const child of Object.values(node)) if (child !== null && typeof child === 'object') next.push(child)
    }
    level = next
  }
  return false
}

/**
 * `value` as JSON text.
 *
 * @throws Refusal `invalid_input` for what JSON cannot carry (cycles, BigInt, nesting over 32 levels),
 * `payload_too_large` for a text over `maxBytes`.
 */
export function toJson(value: unknown, maxBytes: number): { text: string; bytes: number } {
  if (isDeeperThan(value, JSON_DEPTH)) throw new Refusal('invalid_input', `nested deeper than ${JSON_DEPTH} levels`)
  let text: string
  try {
    text = JSON.stringify(value ?? null)
  } catch (cause) {
    throw new Refusal('invalid_input', 'not a JSON value', { cause })
  }
  // What its type hides: a function and a symbol have no JSON text at all.
  if (text === undefined) throw new Refusal('invalid_input', 'not a JSON value')
  const bytes = utf8Length(text)
  if (bytes > maxBytes) throw new Refusal('payload_too_large', `${bytes} bytes, at most ${maxBytes}`)
  return { text, bytes }
}

/** `value` with everything in it frozen, so that a record handed out is the record that stays. */
export function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const child of Object.values(value)) deepFreeze(child)
  }
  return value
}

/** `value` as JSON with the keys of every object in order: equal values give equal texts. */
export function canonicalJson(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null)
  const members = Object.keys(value).sort()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`
}
