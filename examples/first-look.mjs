/** The smallest host: one live registry, one router, one server. `node examples/first-look.mjs [port]` */
const port = Number(process.argv[2] ?? 8080)

// #region readme
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'

const facilities = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition(facilities),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const server = createServer(toNodeHandler(diagnostics)).listen(port, '127.0.0.1')

const ada = { user_id: 'ada', client_id: 'laptop', instance_id: 'run-1', client_type: 'console' }
await facilities.connections.connect({ ...ada, actions: ['report_load'] })
// #endregion

server.on('listening', () => console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/users`))
process.on('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  facilities.close()
})
