/** How a reader takes rows out of a table: one `MGET`, everything checked, nothing trusted because it was found. */

import type * as z from 'zod'
import { sleep } from '../../async/timer.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import type { Ask } from '../../contract/page.js'
import { type StoreReply, WrongType } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { allShards } from './shards.js'

/** A table as its readers know it. `R` is the record, `S` the stored row (state and body merged). */
export interface TableReader<R extends object, S extends object = object> {
  readonly name: string
  /** The id under which such a row is kept: what stands under another one was not written by us. */
  idOf(row: S): string
  /** What a stored row must be. */
  readonly schema: z.ZodType<S>
  /** Fields with an index of their own, the narrowest first. */
  readonly indexes: readonly (keyof R & string)[]
  /** The record as it reads at `now`, or `undefined` when it should be gone already. */
  read(row: S, now: number): R | undefined
}

/** A row that was found under `id`, as it is stored. */
export type Found<S> = { id: string; row: S }

/** What is longer was not written by us and is not parsed. Twice a record, because cjson escapes every slash. */
export const ROW_BYTES = 2 * RECORD_BYTES

const EMPTY_BODY = '\n{}'

/** A stored value that is not what its schema says. Carries the key, never the value. */
export class BadRow extends Error {
  override readonly name = 'BadRow'
}

/** Which field of a row is not what its schema says. */
export const wrongField = (error: z.ZodError) => error.issues[0]?.path.join('.') || 'shape'

/** The row in `value`, or what is wrong with it. */
export function parseRow<R extends object, S extends object>(
  table: TableReader<R, S>,
  id: string,
  value: string,
): S | string {
  if (value.length > ROW_BYTES) return 'is too long'
  const cut = value.indexOf('\n')
  if (cut < 0) return 'is not a row'
  try {
    const row = JSON.parse(value.slice(0, cut))
    // Most tables keep everything in the state.
    if (value.length !== cut + EMPTY_BODY.length || !value.endsWith(EMPTY_BODY))
      Object.assign(row, JSON.parse(value.slice(cut + 1)))
    const read = table.schema.safeParse(row)
    if (!read.success) return `has a wrong ${wrongField(read.error)}`
    return table.idOf(read.data) === id ? read.data : 'is stored under another id'
  } catch {
    return 'is not JSON'
  }
}

/** The rows of `ids` in a shard, in their order; what is absent is left out, what is bad is left out and reported. */
export async function readRows<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  ids: readonly string[],
  ask: Ask,
): Promise<Found<S>[]> {
  if (ids.length === 0) return []
  const keys = ids.map((id) => store.key(shard, table.name, 'row', id))
  const values = await store.command(['MGET', ...keys], keys[0] as string, ask)
  const found: Found<S>[] = []
  const absent: string[] = []
  ids.forEach((id, i) => {
    const value = Array.isArray(values) ? values[i] : null
    if (typeof value !== 'string') absent.push(keys[i] as string)
    const row = goodRow(store, table, shard, id, value ?? null, ask)
    if (row !== undefined) found.push({ id, row })
  })
  await reportForeign(store, absent.slice(0, LOOKS_MAX), ask)
  return found
}

/** The row in `value`; absent rows are left out, and so are bad ones, which are reported. */
function goodRow<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  id: string,
  value: StoreReply,
  ask: Ask,
): S | undefined {
  if (typeof value !== 'string') return undefined
  const row = parseRow(table, id, value)
  if (typeof row !== 'string') return row
  store.report(new BadRow(`${store.key(shard, table.name, 'row', id)} ${row}`), ask)
  return undefined
}

/** Rows after which the event loop has its turn: some milliseconds of parsing. */
export const TURN_ROWS = 500

/** @throws the signal's reason once it has aborted. */
export async function takeTurn(ask: Ask): Promise<void> {
  await sleep(0)
  ask.signal.throwIfAborted()
}

/** What `goodRow` makes of each of `values`, however many they are. */
export async function goodRows<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  found: readonly { id: string; value: StoreReply }[],
  ask: Ask,
): Promise<(S | undefined)[]> {
  const rows: (S | undefined)[] = []
  for (const { id, value } of found) {
    if (rows.push(goodRow(store, table, shard, id, value, ask)) % TURN_ROWS === 0) await takeTurn(ask)
  }
  return rows
}

/** Keys without a value that one read looks at again: an index whose rows have all gone must not cost a command each. */
const LOOKS_MAX = 4

/** `MGET` answers nothing for a key of another type; an index that names one deserves a look, and only then. */
async function reportForeign(store: Store, keys: readonly string[], ask: Ask): Promise<void> {
  // Under permissions of a host's own making it may not be allowed; the answer is none the worse for it.
  const type = (key: string) => store.command(['TYPE', key], key, ask).catch(() => 'none')
  const types = await Promise.all(keys.map(type))
  types.forEach((type, i) => {
    if (type !== 'none' && type !== 'string') store.report(new BadRow(`${keys[i]} is a ${type}`), ask)
  })
}

/** An answer of an index; a key of another type is an empty index, and reported. */
export async function readIndex(store: Store, args: string[], ask: Ask): Promise<StoreReply> {
  try {
    return await store.command(args, args[1] as string, ask)
  } catch (error) {
    if (!(error instanceof WrongType)) throw error
    store.report(new BadRow(`${args[1]} holds another type`), ask)
    return null
  }
}

/** The record of one id, asked of all shards in one round. */
export async function getRecord<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  id: string,
  ask: Ask,
): Promise<{ record: R; row: S } | null> {
  const shards = await allShards(store, ask)
  const found = await Promise.allSettled(
    shards.map(async (shard) => {
      const [now, [held]] = await Promise.all([store.time(ask), readRows(store, table, shard, [id], ask)])
      const record = held && table.read(held.row, now)
      return record === undefined ? undefined : { record, row: (held as Found<S>).row }
    }),
  )
  for (const one of found) if (one.status === 'fulfilled' && one.value) return one.value
  // Not in any that answered: whether it is absent only the others know.
  for (const one of found) if (one.status === 'rejected') throw one.reason
  return null
}
