/** Metrics and traces of a relay through the SDK of its host. `node --test examples/opentelemetry.mjs` */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'

let bytes = 0
const collector = createServer(async (request, response) => {
  for await (const chunk of request) bytes += chunk.length
  response.end()
})
await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve))
process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${collector.address().port}`

const spans = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(provider)

// #region metrics
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { noopAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createMetrics } from 'relayscope/metrics'
import { createMetricProducer } from 'relayscope/opentelemetry'

const { connections, dispatcher } = createMemoryFacilities()
// It is not mounted, so no request reaches it.
const metrics = createMetrics({ ...memoryComposition({ connections, dispatcher }), auth: noopAuth() })
const reader = new PeriodicExportingMetricReader({
  exporter: new OTLPMetricExporter(), // OTEL_EXPORTER_OTLP_ENDPOINT
  metricProducers: [createMetricProducer(metrics)],
})
const meters = new MeterProvider({ readers: [reader] })

// #endregion

// #region traces
import { trace } from '@opentelemetry/api'
import { instrumentation } from 'relayscope/opentelemetry'

const relay = instrumentation() // or new NodeSDK({ instrumentations: [instrumentation()] })
const tracer = trace.getTracer('host')

function handle(command) {
  return tracer.startActiveSpan('POST /commands', async (span) => {
    const { traceId, spanId } = span.spanContext()
    const status = await dispatcher.dispatch({ ...command, trace: `00-${traceId}-${spanId}-01` })
    span.end()
    return status
  })
}
// #endregion

after(async () => {
  relay.disable()
  await meters.shutdown()
  await dispatcher.close()
  collector.close()
})

test('a delivery is a child of the request that dispatched its command', async () => {
  const client = { user_id: 'ada', client_id: 'laptop' }
  let onDelivered
  const delivered = new Promise((resolve) => {
    onDelivered = resolve
  })
  await connections.connect({ ...client, instance_id: 'run-1', client_type: 'web' })
  await dispatcher.attach({ ...client, instance_id: 'run-1' }, async () => void setImmediate(onDelivered))
  await handle({ ...client, command_id: 'c-1', action: 'sync' })
  await delivered
  const found = (name) => spans.getFinishedSpans().find((span) => span.name === name)
  assert.equal(found('deliver sync').parentSpanContext.spanId, found('POST /commands').spanContext().spanId)
})

test('a collector receives the metrics', async () => {
  await meters.forceFlush()
  assert.ok(bytes > 1_000)
})
