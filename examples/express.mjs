/** In an Express 5 application, below a sub-application. `node examples/express.mjs [port]` */
import express from 'express'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()

// #region mount
import { toExpressMiddleware } from 'relayscope/express'

const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics', // the whole public path, wherever the middleware is mounted
})
const ops = express.Router()
ops.use(toExpressMiddleware(diagnostics))

const app = express()
app.use('/ops', ops)
app.get('/', (_req, res) => res.send('the host’s own'))
const server = app.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/`)
})
