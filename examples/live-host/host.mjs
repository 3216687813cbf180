/** A relay host: live objects, the wire that clients speak, and the diagnostics router that looks at it all. */
import { createDiagnosticsRouter } from 'relayscope'
import { createDispatchConnector } from 'relayscope/cooperative-site'
import { startNodeServer } from 'relayscope/node'
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

// Loading one of these makes a ticket or a guest, and at their bound an older one ends: that is a change of state.
const HANDS_OUT = { '/': true, '/notes': true }

/**
 * Whether a page of another site has made the browser ask. A page cannot set or drop `Sec-Fetch-Site`; a program, and
 * a person who typed the address, send none or `none`. Everything else that changes state here wants a bearer token or
 * a JSON content type besides, which no plain cross-site request can bring along.
 */
function isFromElsewhere(request) {
  const site = request.headers.get('sec-fetch-site') ?? 'none'
  return site !== 'none' && site !== 'same-origin'
}

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

  async function answer(request) {
    const { pathname } = new URL(request.url)
    if (diagnostics.owns(pathname)) return diagnostics(request)
    if (pathname in HANDS_OUT && isFromElsewhere(request)) return json({ code: 'cross_site' }, 403)
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

  // A foreign name that resolves to this machine would make the page's ticket readable to a foreign site.
  const server = await startNodeServer(answer, { host, port, allowedHosts: ['loopback'], closeTimeoutMs: GRACE_MS })

  return {
    url: server.url,
    connector,
    /** Ends streams, mailboxes, connections, loops and timers. */
    async close() {
      ending.abort()
      await Promise.all([router.close(), server.close()])
      await live.close()
    },
  }
}
