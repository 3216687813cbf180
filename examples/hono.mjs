/** In a Hono application, here on Node. `node examples/hono.mjs [port]` */
import { createServer } from 'node:http'
import { Hono } from 'hono'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})

// #region mount
import { toHonoHandler } from 'relayscope/hono'

const app = new Hono()
app.use(toHonoHandler(diagnostics))
app.get('/', (c) => c.text('the host’s own'))
// Any Hono server works. Here `toNodeHandler` serves `app.fetch`.
const server = createServer(toNodeHandler(app.fetch))
server.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/`)
})
