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
  /** In the order of the page. */
  rows: Map<string, Row>
  /** The same rows by the records that they were read from: an unchanged record is not parsed again. */
  known: Map<RecordText, Row>
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
  const reading: ListSnapshot = { rows: new Map(), known: new Map(), page: [], compared: '' }
  for (const { name, value } of members) {
    if (name !== 'items' || typeof value === 'string') {
      const text = typeof value === 'string' ? value : `[${value.map((record) => record.text).join(',')}]`
      reading.page.push(`"${name}":${text}`)
      reading.compared += `"${name}":${comparedMember(name, text)}\n`
      continue
    }
    for (const record of value) {
      const { text } = record
      const row = before?.known.get(record) ?? { id: rowId(text, fields), text, compared: comparedRecord(text, of) }
      reading.known.set(record, row)
      reading.rows.set(row.id, row)
    }
  }
  return reading
}

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
  const remove: string[] = []
  const stays: string[] = []
  const fresh: string[] = []
  for (const id of before.rows.keys()) (after.rows.has(id) ? stays : remove).push(id)
  const upsert: string[] = []
  for (const row of after.rows.values()) {
    const was = before.rows.get(row.id)
    if (!was) fresh.push(row.id)
    if (was?.compared !== row.compared) upsert.push(row.text)
  }
  const ids = [...after.rows.keys()]
  const isOrder = (followed: string[]) => ids.every((id, i) => followed[i] === id)
  const newRows = isOrder([...stays, ...fresh]) ? 'last' : 'first'
  const order = newRows === 'last' || isOrder([...fresh, ...stays]) ? null : ids
  if (remove.length === 0 && upsert.length === 0 && !order && before.compared === after.compared) return null
  return { upsert, remove, order, newRows }
}
