/** The smallest relay that you can look at: one client, the router, the dashboard, one server. `node examples/first-look.mjs` */

// #region readme
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createFlightRecorder } from 'relayscope/incident'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'

const { connections } = createMemoryFacilities() // your relay writes to these
const auth = resolveAdminAuth({ strict: true, host: '127.0.0.1' }) // without a key: this machine only
const relay = memoryComposition({ connections })
const recorder = createFlightRecorder(relay) // the last hour
const router = createDiagnosticsRouter({ ...relay, recorder, auth, prefix: '/diagnostics' })
const dashboard = createDashboard({ api: '/diagnostics', prefix: '/dashboard' })
const { url } = await startNodeServer(
  (request, info) => (dashboard.owns(new URL(request.url).pathname) ? dashboard : router)(request, info),
  { host: '127.0.0.1' },
)
const ada = await connections.connect({ user_id: 'ada', client_id: 'laptop', instance_id: 'run-1', client_type: 'web' })
setInterval(() => connections.heartbeat(ada.connection_id), 30_000)
console.log(`Open ${url}/dashboard/`)
// #endregion
