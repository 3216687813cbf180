/** Mounts the router next to a host's own `node:http` routes. `node examples/node.mjs [port]` */
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})

// #region mount
import { createServer } from 'node:http'
import { toNodeHandler } from 'relayscope/node'

const mount = toNodeHandler(diagnostics)
const server = createServer((req, res) => mount(req, res, () => res.end('the host’s own')))
server.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/`)
})
