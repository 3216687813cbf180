/** Probes for an orchestrator next to the router, on one port. `node examples/probes.mjs [port]` */

// #region mount
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'
import { createProbes } from 'relayscope/probes'

const nodeId = process.env.HOSTNAME ?? 'local'
const { connections, dispatcher } = createMemoryFacilities({ nodeId })
const composition = memoryComposition({ connections, dispatcher }) // only what your relay feeds
const router = createDiagnosticsRouter({ ...composition, auth: resolveAdminAuth() })
const probes = createProbes({ inspectors: composition.inspectors, nodeId })

const serve = (request, info) => (probes.owns(new URL(request.url).pathname) ? probes : router)(request, info)
const server = await startNodeServer(serve, {
  host: process.env.HOST ?? '127.0.0.1',
  port: Number(process.env.PORT ?? 0),
})
console.log(`listening at ${server.url}`)

process.once('SIGTERM', async () => {
  probes.drain()
  // Until the orchestrator has noticed: its period times its threshold.
  await new Promise((resolve) => setTimeout(resolve, Number(process.env.DRAIN_MS ?? 10_000)))
  await server.close()
  await dispatcher.close()
})
// #endregion
