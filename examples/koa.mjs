/** In a Koa application, with no adapter of its own. `node examples/koa.mjs [port]` */
import Koa from 'koa'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})

// #region mount
import { toNodeHandler } from 'relayscope/node'

const mount = toNodeHandler(diagnostics)
const app = new Koa()
app.use((ctx, next) => {
  ctx.respond = false
  mount(ctx.req, ctx.res, () => {
    ctx.respond = true
  })
  return ctx.respond ? next() : undefined
})
app.use((ctx) => {
  ctx.body = 'the host’s own'
})
const server = app.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/`)
})
