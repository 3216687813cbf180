/** A relay host: live objects, the wire that clients speak, and the diagnostics router that looks at it all. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createDiagnosticsRouter } from 'relayscope'
import { createDispatchConnector } from 'relayscope/cooperative-site'
import { toNodeHandler } from 'relayscope/node'
import { delay } from './client/relay-client.mjs'
import { openCooperation } from './cooperation.mjs'
import { HEARTBEAT_MS } from './facilities.mjs'
import { createPage } from './page.mjs'
import { json } from './wire/http.mjs'
import { createWire } from './wire/routes.mjs'
import { createSessions } from './wire/sessions.mjs'

/** Where the router is mounted. */
export const PREFIX = '/ops/diagnostics'

// Streams that are told of the end get to hear it.
const GRACE_MS = 500

/** Starts the host on loopback. Resolves to where it listens, whom it knows, and how to end it. */
export async function startHost({ live, auth, clients, app, guests, viewersFile, host = '127.0.0.1', port = 0 }) {
  const { facilities, composition } = live
  const ending = new AbortController()
  const sessions = createSessions({ connections: facilities.connections, heartbeatMs: HEARTBEAT_MS, clients })
  const connector = createDispatchConnector(facilities)
  const wire = createWire({ facilities, sessions, connector, signal: ending.signal })
  const { authenticate: authenticateHost } = sessions
  const cooperation = { live, connector, authenticateHost, app, guests, viewersFile }
  const { router, viewers } = await openCooperation(cooperation)
  const { session_id: SESSION } = app
  const page = createPage({
    '/': () => ({ TICKET: sessions.ticket('visitor') }),
    '/notes': () => viewers.invite().then(({ user_id, token }) => ({ VIEWER: user_id, VIEWER_TOKEN: token, SESSION })),
  })
  const diagnostics = createDiagnosticsRouter({ ...composition, auth, prefix: PREFIX })

  let own
  async function answer(request) {
    const { host: name, pathname } = new URL(request.url)
    if (diagnostics.owns(pathname)) return diagnostics(request)
    // A foreign name that resolves to this machine would make the page's ticket readable to a foreign site.
    if (!own.includes(name)) return json({ code: 'not_this_host' }, 421)
    if (router.owns(pathname)) return router(request)
    if (pathname.startsWith('/relay/')) return wire(request, pathname)
    if (request.method === 'DELETE' && pathname.startsWith('/viewers/')) return throwOut(request, pathname)
    return (request.method === 'GET' && (await page(pathname))) || json({ code: 'no_such_route' }, 404)
  }

  /** Only who may look at everything may throw somebody out. */
  async function throwOut(request, pathname) {
    if (!(await auth.authenticate(request))) return json({ code: 'forbidden' }, 403)
    return json({ revoked: await viewers.revoke(pathname.slice('/viewers/'.length)) })
  }

  const server = createServer(toNodeHandler(answer)).listen(port, host)
  await once(server, 'listening')
  own = [`${host}:${server.address().port}`, `localhost:${server.address().port}`]

  return {
    url: `http://${own[0]}`,
    connector,
    /** Ends streams, mailboxes, connections, loops and timers. */
    async close() {
      const closed = once(server, 'close')
      server.close()
      await router.close()
      ending.abort()
      await Promise.race([closed, delay(GRACE_MS)])
      server.closeAllConnections()
      await live.close()
    },
  }
}
