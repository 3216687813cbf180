/** On `Bun.serve`, with no adapter. `bun examples/bun.mjs [port]` */
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const port = Number(Bun.argv[2] ?? 8080)

// #region mount
const server = Bun.serve({
  port,
  hostname: '127.0.0.1',
  routes: { [diagnostics.prefix]: diagnostics, [`${diagnostics.prefix}/*`]: diagnostics },
  fetch: () => new Response('the host’s own'),
})
// #endregion

console.log(`http://127.0.0.1:${server.port}${diagnostics.prefix}/`)
