/** In a Fastify application, behind its hooks and in its log. `node examples/fastify-hooks.mjs [port]` */
import Fastify from 'fastify'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const app = Fastify()

// #region mount
import { toNodeHandler } from 'relayscope/node'

app.addHook('onRequest', async (request, reply) => reply.raw.setHeader('x-request-id', request.id))

const mount = toNodeHandler(diagnostics)
app.addHook('onRequest', (request, reply, done) => {
  let isOurs = true
  mount(request.raw, reply.raw, () => {
    isOurs = false
  })
  if (isOurs) reply.hijack()
  else done()
})
app.get('/', async () => 'the host’s own')
await app.listen({ port: Number(process.argv[2] ?? 8080), host: '127.0.0.1' })
// #endregion

console.log(`http://127.0.0.1:${app.server.address().port}${diagnostics.prefix}/`)
