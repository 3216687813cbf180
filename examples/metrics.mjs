/** Numbers for a scraper. `node examples/metrics.mjs [port]` */

// #region mount
import { bearerAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createMetrics } from 'relayscope/metrics'
import { startNodeServer } from 'relayscope/node'

const { connections, dispatcher } = createMemoryFacilities()
const metrics = createMetrics({
  ...memoryComposition({ connections, dispatcher }), // only what your relay feeds
  // Without a configured key this random one refuses every scrape.
  auth: bearerAuth(process.env.SERVICE_ADMIN_KEY ?? crypto.randomUUID()),
  labels: { scopes: ['billing', 'exports'] },
})
const server = await startNodeServer(metrics, { host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })
console.log(`scrape ${server.url}/metrics`)
// #endregion
