/** Whether clients are connected now: asked once for all that a view looks at together. */
import { type ClientOfUser, Connection, type RegistryInspector } from '../contract/connections.js'
import { type Budget, readable, readPage, type ViewAsk } from './reading.js'

/** Clients that a registry is asked for at once. */
const CLIENTS_MAX = 500

/** Who holds each client now: the instance, or `null` for nobody. */
export type Holders = (client: ClientOfUser) => string | null

const nameOf = ({ user_id, client_id }: ClientOfUser) => JSON.stringify([user_id, client_id])

/**
 * Asks `registry` who holds `clients`. Where it cannot be asked for many it is asked for one after the other, within the
 * budget.
 *
 * @throws what the registry throws, and `outOf` where the budget does not suffice.
 */
export async function readHolders(
  registry: RegistryInspector,
  clients: readonly ClientOfUser[],
  budget: Budget,
  view: ViewAsk,
  outOf: () => Error,
): Promise<Holders> {
  const distinct = [...new Map(clients.map((client) => [nameOf(client), client])).values()]
  const holders = new Map<string, string | null>()
  if (registry.currentInstances) {
    for (let i = 0; i < distinct.length; i += CLIENTS_MAX) {
      const some = distinct.slice(i, i + CLIENTS_MAX)
      if (budget.entries < some.length) throw outOf()
      budget.entries -= some.length
      const found = await registry.currentInstances(some, view.ask)
      for (const [k, client] of some.entries()) holders.set(nameOf(client), found[k] ?? null)
    }
  } else {
    for (const client of distinct) {
      if (budget.entries <= 0) throw outOf()
      const { user_id, client_id } = client
      const filter = { user_id, client_id, status: 'connected' as const }
      const page = await readPage((query, ask) => registry.listConnections(filter, query, ask), null, 1, budget, view)
      const [held] = readable('registry', Connection, page, view)
      holders.set(nameOf(client), held?.instance_id ?? null)
    }
  }
  return (client) => holders.get(nameOf(client)) ?? null
}
