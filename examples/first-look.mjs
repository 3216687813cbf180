/** The smallest whole relay that can be looked at: one client, one router, one server. `node examples/first-look.mjs` */

// #region readme
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'

const { connections } = createMemoryFacilities() // your relay writes into it
const diagnostics = createDiagnosticsRouter({
  // Only what your relay feeds: the rest answers 501, and not zero.
  ...memoryComposition({ connections }),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
  onError: (error, { route }) => console.error(route, error),
})
const { url } = await startNodeServer(diagnostics, { host: '127.0.0.1', port: Number(process.env.PORT ?? 8080) })
console.log(`open ${url}/ops/diagnostics/users`)

const ada = await connections.connect({ user_id: 'ada', client_id: 'laptop', instance_id: 'run-1', client_type: 'web' })
setInterval(() => connections.heartbeat(ada.connection_id), 30_000) // after 90 s without one, ada is gone
// #endregion
