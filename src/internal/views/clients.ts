/** Looks up whether clients are connected now, in one call for all clients of a view. */
import { betweenSlices } from '../async/turns.js'
import { type ClientOfUser, ConnectionAnswer, type RegistryInspector } from '../contract/connections.js'
import type { InspectionContext, Page, PageQuery } from '../contract/page.js'
import { type Budget, parseRecords, readPage, type ViewContext } from './reading.js'

/** Maximum number of clients per call to a registry. */
const CLIENTS_MAX = 500

/** The instance that holds a client; `null` if the client is not connected, `undefined` if it is and its instance is unknown. */
export type Holder = string | null | undefined

export type Holders = (client: ClientOfUser) => Holder

export const nameOf = ({ user_id, client_id }: ClientOfUser) => JSON.stringify([user_id, client_id])

/**
 * Reads which instance holds each of `clients`. If the registry has no bulk lookup, it is read client by client within
 * the budget, each until a connection is found or there is no next page.
 *
 * @throws what the registry throws, and `outOf` if the budget does not suffice.
 */
export async function readHolders(
  registry: RegistryInspector,
  clients: readonly ClientOfUser[],
  budget: Budget,
  view: ViewContext,
  outOf: () => Error,
): Promise<Holders> {
  const distinct = [...new Map(clients.map((client) => [nameOf(client), client])).values()]
  const holders = new Map<string, Holder>()
  if (registry.currentInstances) {
    for (let i = 0; i < distinct.length; i += CLIENTS_MAX) {
      const some = distinct.slice(i, i + CLIENTS_MAX)
      if (budget.entries < some.length) throw outOf()
      budget.entries -= some.length
      const found = await registry.currentInstances(some, view.ctx)
      for (const [k, client] of some.entries()) holders.set(nameOf(client), found[k] ?? null)
    }
  } else {
    for (const client of distinct) {
      holders.set(nameOf(client), await readHolder(registry, client, budget, view, outOf))
    }
  }
  return (client) => holders.get(nameOf(client))
}

async function readHolder(
  registry: RegistryInspector,
  { user_id, client_id }: ClientOfUser,
  budget: Budget,
  view: ViewContext,
  outOf: () => Error,
): Promise<Holder> {
  const filter = { user_id, client_id, status: 'connected' as const }
  const list = (query: PageQuery, ctx: InspectionContext) => registry.listConnections(filter, query, ctx)
  let cursor: string | null = null
  while (budget.entries > 0) {
    const page: Page<unknown> = await readPage(list, cursor, 1, budget, view)
    const [held] = parseRecords('registry', ConnectionAnswer, page, view)
    if (held) return held.instance_id ?? undefined
    if (!page.has_more) return null
    // An empty page with a next cursor does not show that the client is disconnected. It may have cost no entry.
    if (budget.pages <= 0) break
    cursor = page.next_cursor
    await betweenSlices(view.ctx)
  }
  throw outOf()
}
