/** On `Deno.serve`. `deno run --allow-net --allow-env examples/deno.mjs [port]` */
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const port = Number(Deno.args[0] ?? 8080)
const onListen = (bound) => console.log(`http://127.0.0.1:${bound.port}${diagnostics.prefix}/`)

// #region mount
import { toDenoHandler } from 'relayscope/deno'

// The adapter comes first: it checks Host before anything uses the URL that Deno built from it.
const handle = toDenoHandler((request, info) =>
  diagnostics.owns(new URL(request.url).pathname) ? diagnostics(request, info) : new Response('the host’s own'),
)
Deno.serve({ port, hostname: '127.0.0.1', onListen }, handle)
// #endregion
