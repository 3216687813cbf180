/** Whether clients are connected now: asked once for all that a view looks at together. */
import { betweenSlices } from '../async/turns.js'
import { type ClientOfUser, Connection, type RegistryInspector } from '../contract/connections.js'
import type { InspectionContext, Page, PageQuery } from '../contract/page.js'
import { type Budget, parseRecords, readPage, type ViewContext } from './reading.js'

/** Clients that a registry is asked for at once. */
const CLIENTS_MAX = 500

/** Who holds each client now: the instance, or `null` for nobody. */
export type Holders = (client: ClientOfUser) => string | null

const nameOf = ({ user_id, client_id }: ClientOfUser) => JSON.stringify([user_id, client_id])

/**
 * Asks `registry` who holds `clients`. Where it cannot be asked for many it is asked for one after the other, within the
 * budget: for each until there is somebody, or no page goes on.
 *
 * @throws what the registry throws, and `outOf` where the budget does not suffice.
 */
export async function readHolders(
  registry: RegistryInspector,
  clients: readonly ClientOfUser[],
  budget: Budget,
  view: ViewContext,
  outOf: () => Error,
): Promise<Holders> {
  const distinct = [...new Map(clients.map((client) => [nameOf(client), client])).values()]
  const holders = new Map<string, string | null>()
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
  return (client) => holders.get(nameOf(client)) ?? null
}

async function readHolder(
  registry: RegistryInspector,
  { user_id, client_id }: ClientOfUser,
  budget: Budget,
  view: ViewContext,
  outOf: () => Error,
): Promise<string | null> {
  const filter = { user_id, client_id, status: 'connected' as const }
  const list = (query: PageQuery, ctx: InspectionContext) => registry.listConnections(filter, query, ctx)
  let cursor: string | null = null
  while (budget.entries > 0) {
    const page: Page<Connection> = await readPage(list, cursor, 1, budget, view)
    const [held] = parseRecords('registry', Connection, page, view)
    if (held || !page.has_more) return held?.instance_id ?? null
    // An empty page that goes on says nothing of the client yet. It may have cost no entry.
    if (budget.pages <= 0) break
    cursor = page.next_cursor
    await betweenSlices(view.ctx)
  }
  throw outOf()
}
