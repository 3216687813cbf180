/** What the contract suites assert with: errors that say what was promised and what came instead. No test runner. */
import { endWithin } from '../async/ending.js'
import { canonicalJson, type Json } from '../contract/json.js'
import type { Ask } from '../contract/page.js'
import { Refusal, type RefusalCode } from '../refusal.js'

/** One promise of a contract. `run` rejects with a readable error where it is broken. */
export interface ContractCase {
  name: string
  run(): Promise<void>
}

/** An inspector breaks a promise of its contract. */
export class ContractBroken extends Error {
  override readonly name = 'ContractBroken'
}

/** @throws ContractBroken `promise`, unless `holds`. */
export function check(holds: boolean, promise: string): void {
  if (!holds) throw new ContractBroken(promise)
}

/** A value as comparable text: keys in order, and what JSON cannot carry left out as it is on the wire. */
export const textOf = (value: unknown): string => canonicalJson(JSON.parse(JSON.stringify(value ?? null)) as Json)

const SHOWN = 300
const shorten = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)

/** @throws ContractBroken unless the two are equal as JSON. */
export function checkEqual(actual: unknown, expected: unknown, promise: string): void {
  const [a, b] = [textOf(actual), textOf(expected)]
  check(a === b, `${promise}: expected ${shorten(b)}, got ${shorten(a)}`)
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

/** The value, or the code of the refusal in its place. Any other error goes on. */
export async function orRefusal<T>(work: () => T | Promise<T>): Promise<{ value: T } | { code: RefusalCode }> {
  try {
    return { value: await work() }
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code }
    throw error
  }
}

/** What accompanies a call of the suites. */
export const ASK: Ask = { signal: new AbortController().signal }

// Long enough for a store across a network, short enough to wait for in a test.
const SETTLE_MS = 2_000

/** @throws ContractBroken unless `work` settles, either way, although its signal has been aborted. */
export async function checkSettles(work: (ask: Ask) => unknown, what: string): Promise<void> {
  const { cut } = await endWithin([(async () => work({ signal: AbortSignal.abort() }))()], SETTLE_MS)
  check(cut === 0, `${what} did not settle within ${SETTLE_MS} ms of its signal's abort`)
}
