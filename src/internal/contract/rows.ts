/** Lists over plain data, used by fakes and by incident inspectors. */
import type { ActionObservationInput, ConnectionInput } from './connections.js'
import { compareIds } from './ids.js'
import { type Page, type PageQuery, parseSequence } from './page.js'

/** Whether an entry has all values of a filter. */
export const hasAll = (entry: object, wanted: readonly [string, unknown][]): boolean =>
  wanted.every(([name, value]) => entry[name as keyof object] === value)

/**
 * Returns one page of `rows`, which are sorted oldest first. The token is the index of the next row in the requested
 * order.
 */
export function pageOfRows<T>(rows: readonly T[], { cursor, limit, order }: PageQuery): Page<T> {
  const start = parseSequence(cursor)
  const end = start + limit
  const has_more = end < rows.length
  const ordered = order === 'newest' ? rows.toReversed() : rows
  return { items: ordered.slice(start, end), next_cursor: has_more ? String(end) : null, has_more }
}

/** An action without the numbers, which are taken from the connections unless they are given. */
export type KnownAction = Pick<ActionObservationInput, 'name' | 'description' | 'parameters_schema'> &
  Partial<ActionObservationInput>

function observeAction(
  action: KnownAction,
  connections: readonly ConnectionInput[],
  wanted: readonly [string, unknown][],
): ActionObservationInput | undefined {
  const offering = connections.filter(
    (connection) =>
      connection.status === 'connected' && connection.actions?.includes(action.name) && hasAll(connection, wanted),
  )
  if (offering.length === 0 && wanted.length > 0) return undefined
  return {
    observed_connections: offering.length,
    observed_users: new Set(offering.map((connection) => connection.user_id)).size,
    observed_client_types: [...new Set(offering.flatMap((connection) => connection.client_type ?? []))].sort(),
    ...action,
  }
}

/** `actions` and what connected connections offer, in the order of their names. The token is the last name of a page. */
export function pageOfActions(
  actions: readonly KnownAction[],
  connections: readonly ConnectionInput[],
  filter: object,
  page: PageQuery,
): Page<ActionObservationInput> {
  const known = new Map(actions.map((action) => [action.name, action]))
  const offered = connections.flatMap(({ status, actions }) => (status === 'connected' ? (actions ?? []) : []))
  for (const name of offered)
    if (!known.has(name)) known.set(name, { name, description: null, parameters_schema: null })
  const after = page.cursor
  const wanted = Object.entries(filter)
  const items = [...known.values()]
    .filter(({ name }) => after === null || compareIds(name, after) > 0)
    .sort((a, b) => compareIds(a.name, b.name))
    .flatMap((action) => observeAction(action, connections, wanted) ?? [])
  const has_more = items.length > page.limit
  const shown = items.slice(0, page.limit)
  return { items: shown, next_cursor: has_more ? (shown.at(-1)?.name ?? null) : null, has_more }
}
