/** A relay host: live objects, the wire that clients speak, and the diagnostics router that looks at it all. */
import { createDiagnosticsRouter } from 'relayscope'
import { createDispatchConnector } from 'relayscope/cooperative-site'
import { createDashboard } from 'relayscope/dashboard'
import { createFlightRecorder } from 'relayscope/incident'
import { createMetrics } from 'relayscope/metrics'
import { startNodeServer } from 'relayscope/node'
import { openCooperation } from './cooperation.mjs'
import { HEARTBEAT_MS } from './facilities.mjs'
import { page } from './page.mjs'
import { createHandOut } from './wire/hand-out.mjs'
import { json } from './wire/http.mjs'
import { createWire } from './wire/routes.mjs'
import { createSessions } from './wire/sessions.mjs'

/** Where the router is mounted. */
export const PREFIX = '/ops/diagnostics'
/** Where the page is that shows what it answers. */
export const DASHBOARD = '/dashboard'

/** What the dashboard of the demo links to. */
const TOUR = { title: 'Tour: five steps', href: '/questions' }

// Time for streams to receive the end.
const GRACE_MS = 500

/** Starts the host on loopback. Resolves to its address, its known users, and a function that stops it. */
export async function startHost({
  live,
  auth,
  clients,
  app,
  guests,
  viewersFile,
  questions,
  host = '127.0.0.1',
  port = 0,
}) {
  const { facilities, composition } = live
  const ending = new AbortController()
  const sessions = createSessions({ connections: facilities.connections, heartbeatMs: HEARTBEAT_MS, clients })
  const connector = createDispatchConnector(facilities)
  const wire = createWire({ facilities, sessions, connector, signal: ending.signal })
  const { authenticate: authenticateHost } = sessions
  const cooperation = { facilities, connector, authenticateHost, app, guests, viewersFile, closeTimeoutMs: GRACE_MS }
  const { router, viewers } = await openCooperation(cooperation)
  const handOut = createHandOut({
    '/': () => ({ ticket: sessions.ticket('visitor') }),
    '/notes': async () => ({ ...(await viewers.invite()), session_id: app.session_id }),
  })
  const recorder = createFlightRecorder(composition)
  const diagnostics = createDiagnosticsRouter({ ...composition, recorder, auth, prefix: PREFIX })
  const dashboard = createDashboard({ api: PREFIX, prefix: DASHBOARD, links: questions ? [TOUR] : [] })
  const metrics = createMetrics({ ...composition, auth })

  async function answer(request, info) {
    const { pathname } = new URL(request.url)
    if (diagnostics.owns(pathname)) return diagnostics(request, info)
    if (dashboard.owns(pathname)) return dashboard(request)
    if (metrics.owns(pathname)) return metrics(request, info)
    if (router.owns(pathname)) return router(request)
    if (pathname.startsWith('/relay/')) return wire(request, pathname)
    if (request.method === 'DELETE' && pathname.startsWith('/viewers/')) return throwOut(request, pathname, info)
    if (request.method === 'POST') return handOut(request, pathname)
    const asked = await questions?.(request)
    if (asked) return asked
    return (request.method === 'GET' && (await page(pathname))) || json({ code: 'no_such_route' }, 404)
  }

  /** Only callers that may see everything may disconnect a client. */
  async function throwOut(request, pathname, info) {
    if (!(await auth.authenticate(request, info))) return json({ code: 'forbidden' }, 403)
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
      await Promise.all([router.close(), server.close(), recorder.close()])
      await live.close()
    },
  }
}
