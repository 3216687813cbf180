/** How a reader takes rows out of a table: one `MGET`, everything checked, nothing trusted because it was found. */

import type * as z from 'zod'
import { sleep } from '../../async/timer.js'
import { BadRecord, type FieldFault, faultsOf, textOfFaults } from '../../contract/bad-record.js'
import { deepFreeze } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import type { InspectionContext } from '../../contract/page.js'
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
  /** Whether the index of `field` has all records of that value. @default it has */
  isIndexed?(field: keyof R & string, value: string): boolean
  /** The record as it reads at `now`, or `undefined` when it should be gone already. */
  read(row: S, now: number): R | undefined
}

/** What stands in a place of an index: a row, nothing any more, or what is none of our rows. */
export interface Place<S> {
  row: S | undefined
  isBad: boolean
}

/** What was found under `id`, as it is stored. */
export interface FoundRow<S> extends Place<S> {
  id: string
}

/** What is longer was not written by us and is not parsed. Twice a record, because cjson escapes every slash. */
export const ROW_BYTES = 2 * RECORD_BYTES

const EMPTY_BODY = '\n{}'

/** A stored value that is not what its schema says. Carries the key, never the value. */
export class BadRow extends BadRecord {
  override readonly name = 'BadRow'
}

/** What is wrong with a row, in words; and field by field, where it has any. */
export interface RowFault {
  text: string
  fields: readonly FieldFault[]
}

const whole = (text: string): RowFault => ({ text, fields: [{ path: '', expected: 'a row of this library' }] })

export function faultOfRow(error: z.ZodError): RowFault {
  const fields = faultsOf(error)
  return { text: textOfFaults(fields), fields }
}

/** Rows that are kept of a table as they were parsed: some thousand of the usual size, or some dozens of the largest. */
const KNOWN_MAX = 2_000
const KNOWN_CHARACTERS = 4_194_304

interface KnownRows {
  rows: Map<string, { value: string; row: object }>
  characters: number
}

const known = new WeakMap<object, KnownRows>()

/** A row of a page that reads as it did the last time is that row: the same pages are asked for again and again. */
function rowOf<R extends object, S extends object>(
  table: TableReader<R, S>,
  id: string,
  value: string,
): { row: S } | RowFault {
  const of = known.get(table) ?? { rows: new Map(), characters: 0 }
  const last = of.rows.get(id)
  if (last?.value === value) return { row: last.row as S }
  const parsed = parseRow(table, id, value)
  if (!('row' in parsed)) return parsed
  if (of.rows.size >= KNOWN_MAX || of.characters > KNOWN_CHARACTERS) known.delete(table)
  else known.set(table, of)
  of.rows.set(id, { value, row: deepFreeze(parsed.row) })
  of.characters += value.length - (last?.value.length ?? 0)
  return parsed
}

/** The row in `value`, or what is wrong with it. */
export function parseRow<R extends object, S extends object>(
  table: TableReader<R, S>,
  id: string,
  value: string,
): { row: S } | RowFault {
  if (value.length > ROW_BYTES) return whole(`is ${value.length} characters long, and a row at most ${ROW_BYTES}`)
  const cut = value.indexOf('\n')
  if (cut < 0) return whole('is not a row: it has no line break')
  try {
    const row = JSON.parse(value.slice(0, cut))
    // Most tables keep everything in the state.
    if (value.length !== cut + EMPTY_BODY.length || !value.endsWith(EMPTY_BODY))
      Object.assign(row, JSON.parse(value.slice(cut + 1)))
    const read = table.schema.safeParse(row)
    if (!read.success) return faultOfRow(read.error)
    return table.idOf(read.data) === id ? { row: read.data } : whole('is stored under another id')
  } catch {
    return whole('is not JSON')
  }
}

/** What there is of `ids` in a shard, in their order: what is absent is left out, of what is bad `onError` hears. */
export async function readRows<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  ids: readonly string[],
  ctx: InspectionContext,
): Promise<FoundRow<S>[]> {
  if (ids.length === 0) return []
  const keys = ids.map((id) => store.key(shard, table.name, 'row', id))
  const values = await store.command(['MGET', ...keys], keys[0] as string, ctx)
  const found = ids.map((id, i): FoundRow<S> => {
    const value = (Array.isArray(values) ? values[i] : null) ?? null
    return { id, ...placeOf(store, table, shard, id, value, ctx, rowOf) }
  })
  const absent = found.filter(({ row, isBad }) => row === undefined && !isBad)
  await flagForeign(store, table, shard, absent.slice(0, LOOKS_MAX), ctx)
  return found.filter(({ row, isBad }) => row !== undefined || isBad)
}

/** What `value` is as a row; of a bad one `onError` hears. */
function placeOf<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  id: string,
  value: StoreReply,
  ctx: InspectionContext,
  parse: typeof parseRow,
): Place<S> {
  // A script has said of it already that it is of another type.
  if (typeof value !== 'string') return { row: undefined, isBad: value === FOREIGN }
  const parsed = parse(table, id, value)
  if ('row' in parsed) return { row: parsed.row, isBad: false }
  const { text, fields } = parsed
  store.onError(new BadRow(`${store.key(shard, table.name, 'row', id)} ${text}`, { id, fields }), ctx)
  return { row: undefined, isBad: true }
}

/** What a read script answers for a row that is of another type. */
export const FOREIGN = 0

/** Rows after which the event loop has its turn: some milliseconds of parsing. */
export const TURN_ROWS = 500

/** @throws the signal's reason once it has aborted. */
export async function yieldTurn(ctx: InspectionContext): Promise<void> {
  await sleep(0)
  ctx.signal.throwIfAborted()
}

/** What each of `found` is, however many they are. */
export async function locateRows<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  found: readonly { id: string; value: StoreReply }[],
  ctx: InspectionContext,
): Promise<Place<S>[]> {
  const places: Place<S>[] = []
  for (const { id, value } of found) {
    if (places.push(placeOf(store, table, shard, id, value, ctx, parseRow)) % TURN_ROWS === 0) await yieldTurn(ctx)
  }
  return places
}

/** Keys without a value that one read looks at again: an index whose rows have all gone must not cost a command each. */
const LOOKS_MAX = 4

/** `MGET` answers nothing for a key of another type; an index that names one deserves a look, and only then. */
async function flagForeign<R extends object, S extends object>(
  store: Store,
  { name }: TableReader<R, S>,
  shard: number,
  absent: readonly FoundRow<S>[],
  ctx: InspectionContext,
): Promise<void> {
  await Promise.all(
    absent.map(async (place) => {
      const key = store.key(shard, name, 'row', place.id)
      // Under permissions of a host's own making it may not be allowed; the answer is none the worse for it.
      const type = await store.command(['TYPE', key], key, ctx).catch(() => 'none')
      if (type === 'none' || type === 'string') return
      place.isBad = true
      const fields = [{ path: '', expected: 'a string' }]
      store.onError(new BadRow(`${key} is a ${type}, and should be a string`, { id: place.id, fields }), ctx)
    }),
  )
}

/** An answer of an index; a key of another type is an empty index, and `onError` hears of it. */
export async function readIndex(store: Store, args: string[], ctx: InspectionContext): Promise<StoreReply> {
  try {
    return await store.command(args, args[1] as string, ctx)
  } catch (error) {
    if (!(error instanceof WrongType)) throw error
    store.onError(new BadRow(`${args[1]} holds another type than ${args[0]} reads`), ctx)
    return null
  }
}

/** The record of one id, asked of all shards in one round. */
export async function getRecord<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  id: string,
  ctx: InspectionContext,
): Promise<{ record: R; row: S } | null> {
  const shards = await allShards(store, ctx)
  const found = await Promise.allSettled(
    shards.map(async (shard) => {
      const [now, [held]] = await Promise.all([store.time(ctx), readRows(store, table, shard, [id], ctx)])
      const row = held?.row
      const record = row && table.read(row, now)
      return row === undefined || record === undefined ? undefined : { record, row }
    }),
  )
  for (const one of found) if (one.status === 'fulfilled' && one.value) return one.value
  // Not in any that answered: whether it is absent only the others know.
  for (const one of found) if (one.status === 'rejected') throw one.reason
  return null
}
