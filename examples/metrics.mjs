/** Numbers for a scraper, and the same for the meter of a host that has one. `node examples/metrics.mjs [port]` */

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

/** Tells `meter`, which a host has of `@opentelemetry/api`, what the metrics collect. */
export function bridge(metrics, meter) {
  // #region bridge
  const instruments = new Map(
    // A meter has no instrument for a histogram that was counted elsewhere.
    metrics.families
      .filter(({ type }) => type !== 'histogram')
      .map(({ name, type, unit, help }) => {
        const options = { description: help, ...(unit === 'seconds' ? { unit: 's' } : {}) }
        const made =
          type === 'counter' ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options)
        return [name, made]
      }),
  )
  meter.addBatchObservableCallback(
    async (result) => {
      const { families } = await metrics.collect()
      for (const { name, samples } of families)
        for (const { value, labels } of samples) {
          const instrument = instruments.get(name)
          if (instrument) result.observe(instrument, value, labels)
        }
    },
    [...instruments.values()],
  )
  // #endregion
}

export { server }
