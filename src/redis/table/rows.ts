/** Reads rows of a table: one `MGET`, and every value is validated. */
import * as z from 'zod'
import { sleep } from '../../internal/async/timer.js'
import { BadRecord, type FieldFault, faultsOf, textOfFaults } from '../../internal/contract/bad-record.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { RECORD_BYTES } from '../../internal/contract/limits.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { type StoreReply, WrongType } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { allShards } from './shards.js'

/** A table as its readers see it. `R` is the record, `S` the stored row (state and body merged). */
export interface TableReader<R extends object, S extends object = object> {
  readonly name: string
  /** Returns the id under which such a row is stored: a row under another id was not written by this library. */
  idOf(row: S): string
  /** Schema of a stored row. */
  readonly schema: z.ZodType<S>
  /** Fields with their own index, the most selective first. */
  readonly indexes: readonly (keyof R & string)[]
  /** Whether the index of `field` contains all records with that value. @default true */
  isIndexed?(field: keyof R & string, value: string): boolean
  /** Returns the record as of `now`, or `undefined` if it has expired. */
  read(row: S, now: number): R | undefined
}

/** A position of an index: a valid row, nothing (it was deleted), or an invalid value. */
export interface Place<S> {
  row: S | undefined
  isBad: boolean
}

/** The value stored under `id`. */
interface FoundRow<S> extends Place<S> {
  id: string
}

/**
 * Maximum length of a row in characters; longer values were not written by this library and are not parsed. Twice the
 * size of a record, because cjson escapes every slash.
 */
export const ROW_BYTES = 2 * RECORD_BYTES

const EMPTY_BODY = '\n{}'

/** A stored value does not match its schema. Contains the key, never the value. */
export class BadRow extends BadRecord {
  override readonly name = 'BadRow'
}

/** What is wrong with a row, as text, and by field if known. */
interface RowFault {
  text: string
  fields: readonly FieldFault[]
}

const whole = (text: string): RowFault => ({ text, fields: [{ path: '', expected: 'a row written by this library' }] })

function faultOfRow(error: z.ZodError): RowFault {
  const fields = faultsOf(error)
  return { text: textOfFaults(fields), fields }
}

/**
 * Limits of the cache of parsed rows per table: some thousand rows of the usual size, or some dozens of the largest.
 */
const KNOWN_MAX = 2_000
const KNOWN_CHARACTERS = 4_194_304

interface KnownRows {
  rows: Map<string, { value: string; row: object }>
  characters: number
}

const known = new WeakMap<object, KnownRows>()

/** Returns the parsed row, from a cache if its text has not changed: the same pages are requested again and again. */
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

/** Parses a row, or returns what is wrong with it. */
export function parseRow<R extends object, S extends object>(
  table: TableReader<R, S>,
  id: string,
  value: string,
): { row: S } | RowFault {
  if (value.length > ROW_BYTES) return whole(`has ${value.length} characters, more than the maximum of ${ROW_BYTES}`)
  const cut = value.indexOf('\n')
  if (cut < 0) return whole('is not a row: it has no line break')
  try {
    const row = JSON.parse(value.slice(0, cut))
    // Most tables keep everything in the state.
    if (value.length !== cut + EMPTY_BODY.length || !value.endsWith(EMPTY_BODY))
      Object.assign(row, JSON.parse(value.slice(cut + 1)))
    const read = table.schema.safeParse(row)
    if (!read.success) return faultOfRow(read.error)
    return table.idOf(read.data) === id ? { row: read.data } : whole('is stored under the wrong id')
  } catch {
    return whole('is not valid JSON')
  }
}

/**
 * Returns the rows of `ids` in a shard, in their order, without those that do not exist. Calls `onError` for invalid
 * ones.
 */
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

/** Parses `value` as a row, and calls `onError` if it is invalid. */
function placeOf<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  id: string,
  value: StoreReply,
  ctx: InspectionContext,
  parse: typeof parseRow,
): Place<S> {
  // The script has already reported keys of a wrong type.
  if (typeof value !== 'string') return { row: undefined, isBad: value === FOREIGN }
  const parsed = parse(table, id, value)
  if ('row' in parsed) return { row: parsed.row, isBad: false }
  const { text, fields } = parsed
  store.onError(new BadRow(`${store.key(shard, table.name, 'row', id)} ${text}`, { id, fields }), ctx)
  return { row: undefined, isBad: true }
}

/** What a read script returns for a row of a wrong type. */
export const FOREIGN = 0

/** Number of rows after which other events get a turn: some milliseconds of parsing. */
export const TURN_ROWS = 500

/** Gives other events a turn. @throws the signal's reason once it has aborted. */
export async function yieldTurn(ctx: InspectionContext): Promise<void> {
  await sleep(0)
  ctx.signal.throwIfAborted()
}

/** Parses any number of values that a script found. */
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

/**
 * Maximum number of missing keys that one read checks: an index whose rows are all deleted must not cost one command
 * each.
 */
const LOOKS_MAX = 4

/**
 * Reports keys of a wrong type: `MGET` returns nothing for them, so a key that an index lists but that has no value is
 * checked.
 */
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
      // Custom permissions may not allow it; the result is still valid without it.
      const type = await store.command(['TYPE', key], key, ctx).catch(() => 'none')
      if (type === 'none' || type === 'string') return
      place.isBad = true
      const fields = [{ path: '', expected: 'a string' }]
      store.onError(new BadRow(`${key} has type ${type}, expected string`, { id: place.id, fields }), ctx)
    }),
  )
}

/** Reads an index. A key of a wrong type counts as an empty index and is reported to `onError`. */
export async function readIndex(store: Store, args: string[], ctx: InspectionContext): Promise<StoreReply> {
  try {
    return await store.command(args, args[1] as string, ctx)
  } catch (error) {
    if (!(error instanceof WrongType)) throw error
    store.onError(new BadRow(`${args[1]} has the wrong type for ${args[0]}`), ctx)
    return null
  }
}

/** Reads the record of an id, querying all shards at the same time. */
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
  // Not found in the shards that replied: whether it exists, only the failed ones know.
  for (const one of found) if (one.status === 'rejected') throw one.reason
  return null
}

// How stored rows differ from records: times are epoch ms, which scripts can calculate with.

// The last instant that a timestamp with a four-digit year can express.
const LAST_INSTANT = 253_402_300_799_999

/** An instant or a duration in whole ms. */
export const Millis = z.number().min(0).max(LAST_INSTANT).overwrite(Math.trunc)

const DAY_MS = 86_400_000
const TWO = Array.from({ length: 60 }, (_, i) => String(i).padStart(2, '0'))
const THREE = Array.from({ length: 1_000 }, (_, i) => String(i).padStart(3, '0'))
let knownDay = Number.NaN
let knownDate = ''

/**
 * Returns `epochMs` as a timestamp. A page has hundreds of timestamps of one day: formatting its date once makes this
 * several times faster than `Date`.
 */
export function timestampOf(epochMs: number): string {
  const ms = Math.trunc(epochMs)
  const day = Math.floor(ms / DAY_MS)
  if (day !== knownDay) {
    knownDate = toTimestamp(day * DAY_MS).slice(0, -'00:00:00.000Z'.length)
    knownDay = day
  }
  const rest = ms - day * DAY_MS
  const seconds = Math.floor(rest / 1_000)
  const minutes = Math.floor(seconds / 60)
  const time = `${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}`
  return `${knownDate}${time}.${THREE[rest % 1_000]}Z`
}
