/** HTTP/2 and HTTP/1.1 over TLS on one port. `node examples/http2.mjs key.pem cert.pem [port]` */
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})

// #region mount
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { toNodeHandler } from 'relayscope/node'

const [key, cert] = process.argv.slice(2, 4).map((file) => readFileSync(file))
const mount = toNodeHandler(diagnostics)
// `allowHTTP1` serves clients without HTTP/2 on the same port.
const server = createSecureServer({ key, cert, allowHTTP1: true }, (req, res) =>
  mount(req, res, () => res.end('the host’s own')),
)
server.listen(Number(process.argv[4] ?? 8443), '127.0.0.1')
// #endregion

server.on('listening', () => {
  console.log(`https://127.0.0.1:${server.address().port}${diagnostics.prefix}/`)
})
