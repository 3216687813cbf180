/** What a watched list is made of: rows by their ids, and what has changed from one reading of it to the next. */
import { comparedOf } from '../../http/etag.js'

/** The fields that name a row, for each list that can be watched. */
export const ROWS: Readonly<Record<string, readonly string[]>> = {
  '/actions': ['name'],
  '/browser-windows': ['window_id'],
  '/connections': ['connection_id'],
  '/connections/churn': ['minute'],
  '/contexts': ['context_id'],
  '/delivery/commands': ['user_id', 'client_id', 'command_id'],
  '/delivery/nodes': ['node_id'],
  '/delivery/tenants': ['scope_id'],
  '/findings': ['finding_id'],
  '/history/streams': ['stream'],
  '/rpc/pending': ['correlation_id'],
  '/sessions': ['session_id'],
  '/sites': ['site_id'],
  '/sources': ['source'],
  '/subscriptions': ['subscription_id'],
  '/users': ['user_id'],
}

type Row = Record<string, unknown>

/** The id of a row: the value of its one field, or the JSON list of several. */
function rowId(row: Row, fields: readonly string[]): string {
  const values = fields.map((field) => row[field])
  return values.length === 1 ? String(values[0]) : JSON.stringify(values)
}

/** One reading of a list. */
export interface Reading {
  /** In the order of the page. */
  rows: Map<string, { row: Row; compared: string }>
  /** The page without its rows, and as it is compared. */
  page: Row
  compared: string
}

/** @param of A row without what changes by the clock alone. */
export function readingOf(
  text: string,
  fields: readonly string[],
  of: (row: object) => object = (row) => row,
): Reading {
  const { items, ...page } = JSON.parse(text) as Row & { items: Row[] }
  const rows = items.map((row) => [rowId(row, fields), { row, compared: JSON.stringify(of(row)) }] as const)
  return { rows: new Map(rows), page, compared: JSON.stringify(comparedOf(page)) }
}

/** What makes one reading of another. */
export interface Change {
  /** Rows that are new or another, whole. */
  upsert: Row[]
  /** Ids of rows that are not there any more. */
  remove: string[]
  /** Ids of all rows in their order, where that is not what follows by itself: what stays, and behind it what is new. */
  order: string[] | null
}

/** `null` where nothing has changed but by the clock. */
export function changeOf(before: Reading, after: Reading): Change | null {
  const remove = [...before.rows.keys()].filter((id) => !after.rows.has(id))
  const upsert = [...after.rows].filter(([id, { compared }]) => before.rows.get(id)?.compared !== compared)
  const added = upsert.map(([id]) => id).filter((id) => !before.rows.has(id))
  const followed = [...[...before.rows.keys()].filter((id) => after.rows.has(id)), ...added]
  const ids = [...after.rows.keys()]
  const order = ids.every((id, i) => id === followed[i]) ? null : ids
  if (remove.length === 0 && upsert.length === 0 && order === null && before.compared === after.compared) return null
  return { upsert: upsert.map(([, { row }]) => row), remove, order }
}
