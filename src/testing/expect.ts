/**
 * Assertions of the contract suites: errors that name the expectation and the actual value. Works with any test runner.
 */
import { endWithin } from '../internal/async/deadline.js'
import { CHURN_MINUTES, type Instance, MINUTE_MS } from '../internal/contract/connections.js'
import { canonicalJson, type Json } from '../internal/contract/json.js'
import {
  type InspectionContext,
  matcherOf,
  type Page,
  type PageQuery,
  parseSequence,
} from '../internal/contract/page.js'
import { hasAll } from '../internal/contract/rows.js'
import { Refusal, type RefusalCode } from '../internal/refusal.js'

/** Result of a case that did not fail. */
export type ContractOutcome = 'tested' | 'not tested'

/** The part of a test runner's context that is used: node:test and Vitest pass one to each test. */
export interface TestContext {
  /** Marks the running test as skipped. */
  skip?(reason?: string): unknown
}

/**
 * One case of a contract suite. `run` rejects with a readable error if the contract is broken. If the inspector or the
 * optional method is not implemented, it resolves to `not tested`, and skips the test if the runner's context can do
 * that.
 */
export interface ContractCase {
  /** What the case checks. */
  name: string
  /** Runs the case. */
  run: {
    /** The signature for test runners, some of which accept only tests without a result. */
    (context: TestContext): Promise<void>
    (): Promise<ContractOutcome>
  }
}

/** A case before `toCases`: `run` throws `NotTested` if there is nothing to test. */
export interface Promised {
  name: string
  run(): Promise<void>
}

/** There is nothing to test. */
class NotTested extends Error {}

/** Skips the case. @throws NotTested, which the case reports. */
export function notTested(reason: string): never {
  throw new NotTested(reason)
}

/**
 * Skips the case if some of `values` are not known, after it has checked the others. @throws NotTested that names them.
 */
export function checkKnown(values: Readonly<Record<string, unknown>>): void {
  const unknown = Object.keys(values).filter((name) => values[name] === null || values[name] === undefined)
  if (unknown.length > 0) notTested(`${unknown.join(', ')}: not known`)
}

function toCase({ name, run: hold }: Promised): ContractCase {
  function run(context: TestContext): Promise<void>
  function run(): Promise<ContractOutcome>
  // Declared without parameters: some runners would pass a callback and wait for it.
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

/** Converts cases to a form that any runner accepts. */
export const toCases = (promised: readonly Promised[]): ContractCase[] => promised.map(toCase)

/** Thrown if an inspector breaks its contract. */
export class ContractBroken extends Error {
  override readonly name = 'ContractBroken'
}

/** @throws ContractBroken with `promise` as its message if `holds` is false. */
export function check(holds: boolean, promise: string): void {
  if (!holds) throw new ContractBroken(promise)
}

/** Returns a value as comparable text: sorted keys, without what JSON cannot express. */
export const comparableText = (value: unknown): string =>
  canonicalJson(JSON.parse(JSON.stringify(value ?? null)) as Json)

const SHOWN = 300
const shorten = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)

/**
 * Tolerance in ms when comparing instants that an inspector computes again each time, for example from "idle for n ms".
 */
const TOLERANCE_MS = 1_000

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/

function isSameTime(a: unknown, b: unknown): boolean {
  if (typeof a !== 'string' || typeof b !== 'string' || !INSTANT.test(a) || !INSTANT.test(b)) return false
  return Math.abs(Date.parse(a) - Date.parse(b)) <= TOLERANCE_MS
}

const namesOf = (ids: readonly string[]) => `${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ', …' : ''}`

/** Returns which of `expected` are missing in `actual`, and which are surplus; `undefined` if none. */
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

/** Returns the first difference with its path, or `undefined`. */
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
 * Compares two values as JSON, instants with a tolerance of one second. @throws ContractBroken that names the first
 * different field, or the missing and surplus elements of a list of strings.
 */
export function checkEqual(actual: unknown, expected: unknown, promise: string): void {
  const found = difference(plainJson(actual), plainJson(expected), '')
  if (found !== undefined) throw new ContractBroken(`${promise}: ${found}`)
}

/** Compares entries in any order. @throws ContractBroken that names missing and surplus entries. */
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

/** The part of a schema that the suites use. */
export interface Schema {
  safeParse(value: unknown): { success: boolean; data?: unknown; error?: { message: string } | undefined }
}

/** @throws ContractBroken if `schema` rejects `value`. */
export function checkSchema(schema: Schema, value: unknown, what: string): void {
  const read = schema.safeParse(value)
  check(read.success, `${what} does not match its schema: ${shorten(read.error?.message ?? '')}`)
}

/**
 * @throws ContractBroken if `schema` rejects `value` or does not know one of its fields: for values without payloads.
 */
export function checkExact(schema: Schema, value: unknown, what: string): void {
  checkSchema(schema, value, what)
  checkEqual(value, schema.safeParse(value).data, `${what} has fields that are not in its schema`)
}

/**
 * Returns the value, or the code of the refusal.
 *
 * @param code The correct refusal code here.
 * @throws ContractBroken for any other error, with the correct one in its message.
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
    const instead = `to reject a request, throw new Refusal('${code}') of relayscope; any other error becomes a 500`
    throw new ContractBroken(`${what} threw ${thrown}: ${instead}`, { cause: error })
  }
}

/** Context of the suites' calls. */
export const CONTEXT: InspectionContext = { signal: new AbortController().signal }

// Long enough for a store across a network, short enough for a test.
const END_MS = 2_000

/** @throws ContractBroken if `work` does not settle after its signal has been aborted. */
export async function checkEnds(work: (ctx: InspectionContext) => unknown, what: string): Promise<void> {
  const { aborted } = await endWithin([(async () => work({ signal: AbortSignal.abort() }))()], END_MS)
  check(aborted === 0, `${what} did not settle within ${END_MS} ms after its signal was aborted`)
}

// Records of a fake world: fields that a test does not set have defaults.

/** A record with all fields optional, in nested records too. */
export type Partly<T> = { [Name in keyof T]?: Part<T[Name]> | undefined }
// Lists and maps with arbitrary keys are complete or absent.
type Part<T> = T extends readonly unknown[] ? T : T extends object ? (string extends keyof T ? T : Partly<T>) : T

/** Default of all timestamps. */
export const FAKE_TIME = '2026-01-01T00:00:00.000Z'

const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Merges `given` into `defaults`, which has all fields; `undefined` counts as not given. */
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

/** Creates a record from given fields, its position in its list (from 1), and all given records. */
export type Make<T> = (given: Partly<T>, place: number, all: readonly Partly<T>[]) => T

/** Returns the complete records of a list from `start` to before `end`. */
export function wholeRecords<T>(make: Make<T>, given: readonly Partly<T>[] = [], start = 0, end = given.length): T[] {
  return given.slice(start, end).map((part, i) => make(part, start + i + 1, given))
}

/** Default client. */
export const CLIENT = { user_id: 'user-1', client_id: 'client-1' }
export const INSTANCE: Instance = { ...CLIENT, instance_id: 'instance-1' }

/** Returns one page of the records that match `filter`, in the given order, or reversed for newest first. */
export function fakePage<T extends object>(
  toRecord: Make<T>,
  given: readonly Partly<T>[] = [],
  filter: object,
  page: PageQuery,
): Page<T> {
  const matches = matcherOf({ ...filter })
  const items: T[] = []
  // Only what a page passes is created: a walk may request thousands of pages.
  for (let passed = parseSequence(page.cursor); passed < given.length; passed++) {
    const at = page.order === 'newest' ? given.length - 1 - passed : passed
    const [record] = wholeRecords(toRecord, given, at, at + 1) as [T]
    if (!matches(record)) continue
    if (items.length === page.limit) return { items, next_cursor: String(passed), has_more: true }
    items.push(record)
  }
  return { items, next_cursor: null, has_more: false }
}

/** Returns the first record that matches `key`. */
export function find<T extends object>(
  toRecord: Make<T>,
  given: readonly Partly<T>[] | undefined,
  key: Partial<T>,
): T | null {
  const wanted = Object.entries(key)
  return wholeRecords(toRecord, given).find((entry) => hasAll(entry, wanted)) ?? null
}

/** Checks that `items` are distinct minutes up to `observed_at`, oldest first. */
export function checkMinutes(
  { items, observed_at }: { items: readonly { minute: string }[]; observed_at: string | null },
  name: string,
): void {
  check(
    items.length <= CHURN_MINUTES,
    `${name} returned ${items.length} minutes, more than the maximum of ${CHURN_MINUTES}`,
  )
  for (const [i, { minute }] of items.entries()) {
    check(Date.parse(minute) % MINUTE_MS === 0, `${name} returned ${minute}, which is not the start of a minute`)
    check(observed_at === null || minute <= observed_at, `${name} returned ${minute}, which is in the future`)
    check((items[i - 1]?.minute ?? '') < minute, `${name} is not oldest first, once each: ${minute}`)
  }
}
