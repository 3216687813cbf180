/** One node of a deployment: live objects, the host over them, and work of its own. */
import { join } from 'node:path'
import { resolveAdminAuth } from 'relayscope'
import { openFacilities } from './facilities.mjs'
import { PREFIX, startHost } from './host.mjs'
import { startScheduler } from './scheduler.mjs'

const HOST = '127.0.0.1'

/**
 * Starts it in this process; `questions` answers the page `/questions`. `clients` may connect, with the ticket that each of them has; those that are no application
 * are given work. With a `store` it shares its deployment with other nodes, and has a `nodeId`.
 */
export async function startNode({ nodeId, store, key, clients, app, state, port, questions }) {
  const live = await openFacilities({ nodeId, store, newSessionId: () => app.session_id })
  // Each node has viewers of its own, in a session that is shared.
  const guests = nodeId === undefined ? 'guest' : `guest-${nodeId}`
  const host = await startHost({
    live,
    auth: resolveAdminAuth({ key, strict: true, host: HOST }),
    clients,
    app,
    guests,
    viewersFile: join(state, nodeId === undefined ? 'viewers.json' : `viewers-${nodeId}.json`),
    questions,
    host: HOST,
    port,
  })
  const ending = new AbortController()
  const scheduler = startScheduler({
    facilities: live.facilities,
    connector: host.connector,
    clients: clients.filter(({ client_id }) => client_id !== app.client_id),
    signal: ending.signal,
  })

  return {
    urls: [host.url],
    diagnostics: host.url + PREFIX,
    guest: `${guests}-1`,
    async close() {
      ending.abort()
      await scheduler.done
      await host.close()
    },
  }
}
