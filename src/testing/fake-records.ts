/** Records of a fake world: what a test does not name has a default, so that it says only what it is about. */
import type { Instance } from '../contract/connections.js'
import { type Page, type PageQuery, parseSequence } from '../contract/page.js'

/** A record of which any field may be left out, in the records that it is made of too. */
export type Partly<T> = { [Name in keyof T]?: Part<T[Name]> | undefined }
// Lists and maps of any name are whole or not there.
type Part<T> = T extends readonly unknown[] ? T : T extends object ? (string extends keyof T ? T : Partly<T>) : T

/** When everything happened of which a test does not say when. */
export const FAKE_TIME = '2026-01-01T00:00:00.000Z'

const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `given` over `defaults`, which has every name; what is given as `undefined` is not given. */
export function fill<T extends object>(defaults: T, given: Partly<T>): T {
  const filled = { ...defaults, ...given } as T
  for (const name of Object.keys(defaults) as (keyof T)[]) {
    const whole = defaults[name]
    const part = filled[name]
    if (part === undefined) filled[name] = whole
    else if (part !== whole && isRecord(whole) && isRecord(part)) filled[name] = fill(whole, part) as T[keyof T]
  }
  return filled
}

/** One record from what is given of it, its place in its list from 1, and all that is given. */
export type Make<T> = (given: Partly<T>, place: number, all: readonly Partly<T>[]) => T

/** The records of a list from `start` to before `end`, each whole. */
export function wholeRecords<T>(make: Make<T>, given: readonly Partly<T>[] = [], start = 0, end = given.length): T[] {
  return given.slice(start, end).map((part, i) => make(part, start + i + 1, given))
}

/** Whoever a test does not name. */
export const CLIENT = { user_id: 'user-1', client_id: 'client-1' }
export const INSTANCE: Instance = { ...CLIENT, instance_id: 'instance-1' }

/** Whether an entry has all values of a filter. */
export const hasAll = (entry: object, wanted: [string, unknown][]) =>
  wanted.every(([name, value]) => entry[name as keyof object] === value)

/** One page of the records that have all of `filter`'s values, in the order in which they are given. */
export function pageOf<T extends object>(
  toRecord: Make<T>,
  given: readonly Partly<T>[] | undefined,
  filter: object,
  page: PageQuery,
): Page<T> {
  const start = parseSequence(page.cursor)
  const end = start + page.limit
  const wanted = Object.entries(filter)
  // Without a filter nothing but the page is made: a walk may ask thousands of times.
  const found = wanted.length ? wholeRecords(toRecord, given).filter((entry) => hasAll(entry, wanted)) : undefined
  const has_more = end < (found ?? given ?? []).length
  const items = found?.slice(start, end) ?? wholeRecords(toRecord, given, start, end)
  return { items, next_cursor: has_more ? String(end) : null, has_more }
}

/** The first of the records that has all of `key`'s values. */
export function find<T extends object>(
  toRecord: Make<T>,
  given: readonly Partly<T>[] | undefined,
  key: Partial<T>,
): T | null {
  const wanted = Object.entries(key)
  return wholeRecords(toRecord, given).find((entry) => hasAll(entry, wanted)) ?? null
}
