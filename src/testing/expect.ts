/** What the contract suites assert with: errors that say what was promised and what came instead. No test runner. */
import { endWithin } from '../async/ending.js'
import type { Instance } from '../contract/connections.js'
import { canonicalJson, type Json } from '../contract/json.js'
import { type InspectionContext, matcherOf, type Page, type PageQuery, parseSequence } from '../contract/page.js'
import { hasAll } from '../contract/rows.js'
import { Refusal, type RefusalCode } from '../refusal.js'

/** What became of a promise that was not broken. */
export type ContractOutcome = 'tested' | 'not tested'

/** What the context of a test runner may have: node:test and Vitest hand one to each test. */
export interface TestContext {
  skip?(reason?: string): unknown
}

/**
 * One promise of a contract. `run` rejects with a readable error where it is broken. Where the inspector, or the optional
 * method that the promise is about, is absent, it answers `not tested`, and tells the runner's own context so.
 */
export interface ContractCase {
  name: string
  run: {
    /** As a test runner calls it: the types of some take no answer from a test. */
    (context: TestContext): Promise<void>
    (): Promise<ContractOutcome>
  }
}

/** What a suite is written as: `run` throws `NotTested` where there is nothing to hold. */
export interface Promised {
  name: string
  run(): Promise<void>
}

/** There is nothing that the promise is about. */
class NotTested extends Error {}

/** @throws NotTested, which its case reports. */
export function notTested(reason: string): never {
  throw new NotTested(reason)
}

function toCase({ name, run: hold }: Promised): ContractCase {
  function run(context: TestContext): Promise<void>
  function run(): Promise<ContractOutcome>
  // Without a parameter of its own: some runners take that for a callback to wait for.
  async function run(...[context]: [TestContext?]): Promise<unknown> {
    try {
      await hold()
      return 'tested'
    } catch (error) {
      if (!(error instanceof NotTested)) throw error
      context?.skip?.(`not tested: ${error.message}`)
      return 'not tested'
    }
  }
  return { name, run }
}

/** `promised` as any runner takes them. */
export const toCases = (promised: readonly Promised[]): ContractCase[] => promised.map(toCase)

/** An inspector breaks a promise of its contract. */
export class ContractBroken extends Error {
  override readonly name = 'ContractBroken'
}

/** @throws ContractBroken `promise`, unless `holds`. */
export function check(holds: boolean, promise: string): void {
  if (!holds) throw new ContractBroken(promise)
}

/** A value as comparable text: keys in order, and what JSON cannot carry left out as it is on the wire. */
export const comparableText = (value: unknown): string =>
  canonicalJson(JSON.parse(JSON.stringify(value ?? null)) as Json)

const SHOWN = 300
const shorten = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)

/** How far two answers may be apart in an instant that the inspector works out anew: from "idle for n ms", for example. */
const TOLERANCE_MS = 1_000

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/

function isSameTime(a: unknown, b: unknown): boolean {
  if (typeof a !== 'string' || typeof b !== 'string' || !INSTANT.test(a) || !INSTANT.test(b)) return false
  return Math.abs(Date.parse(a) - Date.parse(b)) <= TOLERANCE_MS
}

const namesOf = (ids: readonly string[]) => `${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ', …' : ''}`

/** Which of `expected` are missing in `actual`, and which are there besides; `undefined` for none. */
export function differenceOfIds(actual: readonly string[], expected: readonly string[]): string | undefined {
  const [there, wanted, once] = [new Set(actual), new Set(expected), new Set<string>()]
  const missing = expected.filter((id) => !there.has(id))
  const surplus = actual.filter((id) => !wanted.has(id))
  const twice = actual.filter((id) => once.size === once.add(id).size)
  const parts = [
    ...(missing.length > 0 ? [`missing ${namesOf(missing)}`] : []),
    ...(surplus.length > 0 ? [`surplus ${namesOf(surplus)}`] : []),
    ...(twice.length > 0 ? [`more than once ${namesOf(twice)}`] : []),
  ]
  return parts.length > 0 ? parts.join('; ') : undefined
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** The first place in which the two differ, and how; `undefined` for none. */
function difference(actual: Json | undefined, expected: Json | undefined, path: string): string | undefined {
  if (isSameTime(actual, expected)) return undefined
  if (isTexts(actual) && isTexts(expected)) {
    const ids = differenceOfIds(actual, expected)
    if (ids !== undefined) return `${path}${ids}`
  }
  const isNested = [actual, expected].every((value) => value !== null && typeof value === 'object')
  if (isNested && Array.isArray(actual) === Array.isArray(expected)) {
    const [a, b] = [actual as { [name: string]: Json }, expected as { [name: string]: Json }]
    for (const name of [...new Set([...Object.keys(b), ...Object.keys(a)])].sort()) {
      const found = difference(a[name], b[name], `${path}${name}: `)
      if (found !== undefined) return found
    }
    return undefined
  }
  const [a, b] = [actual, expected].map((value) => (value === undefined ? 'nothing' : canonicalJson(value)))
  return a === b ? undefined : `${path}expected ${shorten(b as string)}, got ${shorten(a as string)}`
}

const plainJson = (value: unknown): Json => JSON.parse(JSON.stringify(value ?? null)) as Json

/**
 * @throws ContractBroken unless the two are equal as JSON, instants to within a second: names the first field that differs, and of
 * lists of names those that are missing and those that are there besides.
 */
export function checkEqual(actual: unknown, expected: unknown, promise: string): void {
  const found = difference(plainJson(actual), plainJson(expected), '')
  if (found !== undefined) throw new ContractBroken(`${promise}: ${found}`)
}

/** @throws ContractBroken unless both hold the same entries, in any order: names the missing and the surplus ones. */
export function checkEntries<Item>(
  actual: readonly Item[],
  expected: readonly Item[],
  idOf: (entry: Item) => string,
  promise: string,
): void {
  const ids = differenceOfIds(actual.map(idOf), expected.map(idOf))
  if (ids !== undefined) throw new ContractBroken(`${promise}: ${ids}`)
  const known = new Map(actual.map((entry) => [idOf(entry), entry]))
  for (const entry of expected) checkEqual(known.get(idOf(entry)), entry, `${promise}: ${idOf(entry)}`)
}

/** What a schema of the contract can do; the suites need no more of it. */
export interface Schema {
  safeParse(value: unknown): { success: boolean; data?: unknown; error?: { message: string } | undefined }
}

/** @throws ContractBroken unless `schema` accepts `value`. */
export function checkSchema(schema: Schema, value: unknown, what: string): void {
  const read = schema.safeParse(value)
  check(read.success, `${what} is not what its schema says: ${shorten(read.error?.message ?? '')}`)
}

/** @throws ContractBroken unless `schema` accepts `value` and knows every field of it: for what must carry no payload. */
export function checkExact(schema: Schema, value: unknown, what: string): void {
  checkSchema(schema, value, what)
  checkEqual(value, schema.safeParse(value).data, `${what} carries what its schema does not name`)
}

/**
 * The value, or the code of the refusal in its place.
 *
 * @param code What would be right to refuse with here.
 * @throws ContractBroken for any other error, which says what to throw instead.
 */
export async function orRefusal<T>(
  work: () => T | Promise<T>,
  what: string,
  code: RefusalCode,
): Promise<{ value: T } | { code: RefusalCode }> {
  try {
    return { value: await work() }
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code }
    const thrown = shorten(String(error))
    const instead = `to say no, throw new Refusal('${code}') of relayscope; anything else is a 500`
    throw new ContractBroken(`${what} threw ${thrown}: ${instead}`, { cause: error })
  }
}

/** What accompanies a call of the suites. */
export const CONTEXT: InspectionContext = { signal: new AbortController().signal }

// Long enough for a store across a network, short enough to wait for in a test.
const END_MS = 2_000

/** @throws ContractBroken unless `work` ends, either way, although its signal has been aborted. */
export async function checkEnds(work: (ctx: InspectionContext) => unknown, what: string): Promise<void> {
  const { aborted } = await endWithin([(async () => work({ signal: AbortSignal.abort() }))()], END_MS)
  check(aborted === 0, `${what} had not ended ${END_MS} ms after its signal aborted; it should stop with its signal`)
}

// Records of a fake world: what a test does not name has a default, so that it says only what it is about.

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

/** One page of the records that have all of `filter`'s values, in the order in which they are given; the last one first for the newest. */
export function fakePage<T extends object>(
  toRecord: Make<T>,
  given: readonly Partly<T>[] | undefined,
  filter: object,
  page: PageQuery,
): Page<T> {
  const start = parseSequence(page.cursor)
  const end = start + page.limit
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  // Without a filter nothing but the page is made: a walk may ask thousands of times.
  const found = isFiltered ? wholeRecords(toRecord, given).filter(matcherOf({ ...filter })) : undefined
  const all = (found ?? given ?? []).length
  const has_more = end < all
  const [from, to] = page.order === 'newest' ? [Math.max(0, all - end), Math.max(0, all - start)] : [start, end]
  const items = found?.slice(from, to) ?? wholeRecords(toRecord, given, from, to)
  if (page.order === 'newest') items.reverse()
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
