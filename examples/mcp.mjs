/** Serves the tools for agents next to the router. `node examples/mcp.mjs [port]` */

// #region mount
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMcp } from 'relayscope/mcp'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'

const { connections, dispatcher } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, dispatcher }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
// Callers that the router accepts, by the names of this machine. A host that others reach passes its own names.
const mcp = createMcp({ router: diagnostics, prefix: '/mcp', allowedHosts: ['loopback'] })

const [serveApi, serveMcp] = [toNodeHandler(diagnostics), toNodeHandler(mcp)]
const server = createServer((req, res) => serveMcp(req, res, () => serveApi(req, res)))
server.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}/mcp`)
})
