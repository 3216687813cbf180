/** A relay host: live objects, the wire that clients speak, and the diagnostics router that looks at it all. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createDiagnosticsRouter } from 'relayscope'
import { toNodeHandler } from 'relayscope/node'
import { createCalls } from './calls.mjs'
import { HEARTBEAT_MS } from './facilities.mjs'
import { createPage } from './page.mjs'
import { json } from './wire/http.mjs'
import { createWire } from './wire/routes.mjs'
import { createSessions } from './wire/sessions.mjs'

/** Where the router is mounted. */
export const PREFIX = '/ops/diagnostics'

/** Starts the host on loopback. Resolves to where it listens, whom it knows, and how to end it. */
export async function startHost({ facilities, composition, auth, host = '127.0.0.1', port = 0 }) {
  const ending = new AbortController()
  const sessions = createSessions({ connections: facilities.connections, heartbeatMs: HEARTBEAT_MS })
  const calls = createCalls(facilities)
  const wire = createWire({ facilities, sessions, calls, signal: ending.signal })
  const page = createPage({ ticketFor: () => sessions.ticket('visitor') })
  const diagnostics = createDiagnosticsRouter({ ...composition, auth, prefix: PREFIX })

  let own
  async function answer(request) {
    const { host: name, pathname } = new URL(request.url)
    if (diagnostics.owns(pathname)) return diagnostics(request)
    // A foreign name that resolves to this machine would make the page's ticket readable to a foreign site.
    if (!own.includes(name)) return json({ code: 'not_this_host' }, 421)
    if (pathname.startsWith('/relay/')) return wire(request, pathname)
    return (request.method === 'GET' && (await page(pathname))) || json({ code: 'no_such_route' }, 404)
  }

  const server = createServer(toNodeHandler(answer)).listen(port, host)
  await once(server, 'listening')
  own = [`${host}:${server.address().port}`, `localhost:${server.address().port}`]

  return {
    url: `http://${own[0]}`,
    sessions,
    calls,
    /** Ends mailboxes, connections, loops and timers. */
    async close() {
      ending.abort()
      server.close()
      server.closeAllConnections()
      await facilities.close()
    },
  }
}
