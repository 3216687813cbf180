/** The rows of a watched list by id, and the changes between two reads. */
import type { Encoded, RecordText } from '../../http/encode.js'
import { type Compared, comparedMember, comparedRecord } from '../../http/etag.js'

/** The fields that name a row, for each list that can be watched. */
export const ROWS: Readonly<Record<string, readonly string[]>> = {
  '/actions': ['name'],
  '/browser-windows': ['window_id'],
  '/connections': ['connection_id'],
  '/connections/churn': ['minute'],
  '/connections/events': ['connection_id', 'event'],
  '/contexts': ['context_id'],
  '/delivery/churn': ['minute'],
  // Commands without a user differ only in `scope_id`, which is part of `admission`; clients read whole fields.
  '/delivery/commands': ['user_id', 'client_id', 'command_id', 'admission'],
  '/delivery/mailboxes': ['user_id', 'client_id'],
  '/delivery/nodes': ['node_id'],
  '/delivery/tenants': ['scope_id'],
  '/findings': ['finding_id'],
  '/history/streams': ['stream'],
  '/rpc/ended': ['correlation_id'],
  '/rpc/pending': ['correlation_id'],
  '/sessions': ['session_id'],
  '/sites': ['site_id'],
  '/sources': ['source'],
  '/subscriptions': ['subscription_id'],
  '/users': ['user_id'],
}

/** The id of a row: the value of its one field, or the JSON list of several. */
function rowId(text: string, fields: readonly string[]): string {
  const row = JSON.parse(text) as Record<string, unknown>
  const values = fields.map((field) => row[field])
  return values.length === 1 ? String(values[0]) : JSON.stringify(values)
}

interface Row {
  id: string
  text: string
  compared: string
}

/** One reading of a list. */
export interface ListSnapshot {
  /** The records of `rows`; empty if an id came twice. */
  records: readonly RecordText[]
  /** In the order of the page, each id once. */
  rows: readonly Row[]
  /** Whether the rows have the ids of the reading before this one, in the same order. */
  isSameOrder: boolean
  /** The rows of this and earlier readings by their records: an unchanged record is not parsed again. */
  known: WeakMap<RecordText, Row>
  /** The page without its rows, member by member, and as it is compared. */
  page: string[]
  compared: string
}

/**
 * @param of A row without what changes by the clock alone.
 * @param before The reading before this one.
 */
export function readingOf(
  { members }: Encoded,
  fields: readonly string[],
  of: Compared | undefined,
  before?: ListSnapshot,
): ListSnapshot {
  const known = before?.known ?? new WeakMap<RecordText, Row>()
  const reading: ListSnapshot = { records: [], rows: [], isSameOrder: false, known, page: [], compared: '' }
  const rowOf = (record: RecordText): Row => {
    const kept = known.get(record)
    if (kept) return kept
    const { text } = record
    const row = { id: rowId(text, fields), text, compared: comparedRecord(text, of) }
    known.set(record, row)
    return row
  }
  for (const { name, value } of members) {
    if (name !== 'items' || typeof value === 'string') {
      const text = typeof value === 'string' ? value : `[${value.map((record) => record.text).join(',')}]`
      reading.page.push(`"${name}":${text}`)
      reading.compared += `"${name}":${comparedMember(name, text)}\n`
      continue
    }
    const rows = value.map((record, i) => (record === before?.records[i] && before.rows[i]) || rowOf(record))
    // Most readings find the rows of the last one: then no index of them is made.
    reading.isSameOrder = rows.length === before?.rows.length && rows.every(({ id }, i) => id === before.rows[i]?.id)
    reading.rows = reading.isSameOrder ? rows : [...byId(rows).values()]
    if (rows.length === reading.rows.length) reading.records = value
  }
  return reading
}

const byId = (rows: readonly Row[]) => new Map(rows.map((row) => [row.id, row]))

/** The changes between two reads. */
export interface Change {
  /** Rows that are new or another, whole. */
  upsert: string[]
  /** Ids of rows that are not there any more. */
  remove: string[]
  /**
   * Ids of all rows in order; `null` if the remaining rows keep their order. Then `newRows` says where new rows are
   * inserted.
   */
  order: string[] | null
  newRows: 'last' | 'first'
}

/** `null` where nothing has changed but by the clock. */
export function changeOf(before: ListSnapshot, after: ListSnapshot): Change | null {
  const { upsert, remove, order, newRows } = after.isSameOrder ? sameRowsOf(before, after) : otherRowsOf(before, after)
  if (remove.length === 0 && upsert.length === 0 && !order && before.compared === after.compared) return null
  return { upsert, remove, order, newRows }
}

function sameRowsOf(before: ListSnapshot, after: ListSnapshot): Change {
  const changed = after.rows.filter((row, i) => row !== before.rows[i] && row.compared !== before.rows[i]?.compared)
  return { upsert: changed.map(({ text }) => text), remove: [], order: null, newRows: 'last' }
}

function otherRowsOf(before: ListSnapshot, after: ListSnapshot): Change {
  const [old, now] = [byId(before.rows), byId(after.rows)]
  const remove: string[] = []
  const stays: string[] = []
  const fresh: string[] = []
  for (const id of old.keys()) (now.has(id) ? stays : remove).push(id)
  const upsert: string[] = []
  for (const row of after.rows) {
    const was = old.get(row.id)
    if (!was) fresh.push(row.id)
    if (was?.compared !== row.compared) upsert.push(row.text)
  }
  const ids = [...now.keys()]
  const isOrder = (followed: string[]) => ids.every((id, i) => followed[i] === id)
  const newRows = isOrder([...stays, ...fresh]) ? 'last' : 'first'
  const order = newRows === 'last' || isOrder([...fresh, ...stays]) ? null : ids
  return { upsert, remove, order, newRows }
}
