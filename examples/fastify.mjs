/** In front of a Fastify application, with no adapter of its own. `node examples/fastify.mjs [port]` */
import Fastify from 'fastify'
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
const app = Fastify({
  serverFactory: (handle) => createServer((req, res) => mount(req, res, () => handle(req, res))),
})
app.get('/', async () => 'the host’s own')
await app.listen({ port: Number(process.argv[2] ?? 8080), host: '127.0.0.1' })
// #endregion

console.log(`http://127.0.0.1:${app.server.address().port}${diagnostics.prefix}/`)
