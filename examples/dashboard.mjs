/** The dashboard next to the router that it reads. `node examples/dashboard.mjs [port]` */

// #region mount
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'

const { connections, dispatcher } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, dispatcher }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const dashboard = createDashboard({ api: '/ops/diagnostics', prefix: '/dashboard' })

const [serveDashboard, serveApi] = [toNodeHandler(dashboard), toNodeHandler(diagnostics)]
const server = createServer((req, res) => serveDashboard(req, res, () => serveApi(req, res)))
server.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}/dashboard/`)
})
