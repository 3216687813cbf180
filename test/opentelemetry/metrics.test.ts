/** The metrics as an SDK of OpenTelemetry exports them, by OTLP to a receiver that decodes the protobuf. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { expect, it, onTestFinished } from 'vitest'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { type CollectedMetrics, createMetrics, type MetricFamily, type MetricSample } from '../../src/metrics/index.js'
import { createMetricProducer } from '../../src/opentelemetry/index.js'
import { readMetrics } from './protobuf.js'

/** Listens as a collector, and returns what it was sent last. */
async function startReceiver() {
  let received: ReturnType<typeof readMetrics> = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received = readMetrics(Buffer.concat(chunks))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/metrics`
  return { url, received: () => received }
}

it('exports each family with its type, unit and values, next to the metrics of the host', async () => {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  const { connections, dispatcher, rpc } = facilities
  const instance = { user_id: 'ada', client_id: 'desk', instance_id: 'i' }
  await connections.connect({ ...instance, client_type: 'web' })
  await dispatcher.attach(instance, ({ user_id, client_id, command_id }) => {
    void dispatcher.settle({ user_id, client_id, command_id, state: 'resulted', instance_id: 'i', acknowledge: true })
  })
  for (const command_id of ['1', '2', '3'])
    await dispatcher.dispatch({ user_id: 'ada', client_id: 'desk', command_id, action: 'sync' })
  await rpc.open({ user_id: 'ada', client_id: 'desk', action: 'list', timeout_ms: 60_000 })
  const metrics = createMetrics({ ...memoryComposition(facilities), auth: noopAuth() })
  const stepCount = async () => {
    const { families } = await metrics.collect()
    const steps = families.find(({ name }) => name === 'relayscope_delivery_node_step_seconds')?.samples ?? []
    return steps.find(({ labels, part }) => labels.step === 'total' && part === 'count')?.value
  }
  await expect.poll(stepCount).toBe(3)

  const { url, received } = await startReceiver()
  let read: CollectedMetrics | undefined
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url }),
    exportIntervalMillis: 3_600_000,
    metricProducers: [
      createMetricProducer({
        async collect() {
          read = await metrics.collect()
          return read
        },
      }),
    ],
  })
  const provider = new MeterProvider({ readers: [reader] })
  onTestFinished(() => provider.shutdown())
  provider.getMeter('host').createCounter('host.requests').add(5)
  const before = Date.now()
  await provider.forceFlush()

  const found = new Map(received().map((metric) => [metric.name, metric]))
  expect(found.get('host.requests')).toMatchObject({ scope: 'host', type: 'sum' })
  const known = (read?.families ?? []).filter(({ samples }) => samples.length > 0)
  expect(known.length).toBeGreaterThan(20)
  for (const { name, type, unit, samples } of known) {
    const metric = found.get(name)
    expect(metric, name).toMatchObject({
      scope: 'relayscope',
      type: type === 'counter' ? 'sum' : type === 'histogram' ? 'histogram' : 'gauge',
      unit: unit === 'seconds' ? 's' : '1',
      ...(type === 'gauge' || type === 'info' ? {} : { isCumulative: true }),
      ...(type === 'counter' ? { isMonotonic: true } : {}),
    })
    if (type !== 'histogram')
      expect(
        metric?.points.map(({ attributes, value }) => ({ labels: attributes, value })),
        name,
      ).toEqual(samples.map(({ labels, value }) => ({ labels, value })))
    for (const { at } of metric?.points ?? []) expect(at).toBeGreaterThanOrEqual(before - 1)
  }
  expect(found.get('relayscope_rpc_pending_calls')?.points).toMatchObject([{ attributes: {}, value: 1 }])

  const steps = found.get('relayscope_delivery_node_step_seconds')
  const total = steps?.points.find(({ attributes }) => attributes.step === 'total')
  expect(Object.keys(total?.attributes ?? {})).toEqual(['node_id', 'step'])
  expect(total?.count).toBe(3)
  expect(total?.buckets?.reduce((sum, count) => sum + count)).toBe(3)
  expect(total?.buckets).toHaveLength((total?.bounds?.length ?? 0) + 1)
  expect(total?.bounds).toEqual([...(total?.bounds ?? [])].sort((a, b) => a - b))
})

it('names the durations of observed calls as the conventions do', async () => {
  const labels = (direction: string) => ({ action: 'list', direction })
  const samples = (direction: string, count: number): MetricSample[] => [
    { part: 'bucket', labels: { ...labels(direction), le: '0.1' }, value: count - 1 },
    { part: 'bucket', labels: { ...labels(direction), le: '+Inf' }, value: count },
    { part: 'count', labels: labels(direction), value: count },
    { part: 'sum', labels: labels(direction), value: 0.25 },
  ]
  const { families } = createMetrics({ inspectors: {}, auth: noopAuth() })
  const calls = families.find(({ name }) => name === 'relayscope_rpc_observed_call_seconds')
  const family = { ...calls, samples: [...samples('to_client', 3), ...samples('to_server', 7)] } as MetricFamily
  const observed_at = '2026-01-01T00:00:00.500Z'
  const producer = createMetricProducer({ collect: async () => ({ families: [family], observed_at }) })
  const { resourceMetrics } = await producer.collect()
  const points = resourceMetrics.scopeMetrics[0]?.metrics.map(({ descriptor, dataPoints }) => [
    descriptor.name,
    dataPoints,
  ])
  const point = (count: number) => ({
    attributes: { 'rpc.system.name': '_OTHER', 'rpc.method': 'list' },
    startTime: [0, 0],
    endTime: [1_767_225_600, 500_000_000],
    value: { count, sum: 0.25, buckets: { boundaries: [0.1], counts: [count - 1, 1] } },
  })
  expect(points).toEqual([
    ['rpc.client.call.duration', [point(3)]],
    ['rpc.server.call.duration', [point(7)]],
  ])
})

it('reads nothing before a reader collects, and says which source failed', async () => {
  let asked = 0
  const metrics = createMetrics({
    inspectors: {
      rpc: {
        listPending() {
          asked++
          throw new Error('s3cret')
        },
        getPending: () => null,
      },
    } as never,
    auth: noopAuth(),
    onError: null,
  })
  const producer = createMetricProducer(metrics)
  expect(asked).toBe(0)
  const { resourceMetrics, errors } = await producer.collect()
  expect(errors).toEqual([])
  const [own] = resourceMetrics.scopeMetrics
  const up = own?.metrics.find(({ descriptor }) => descriptor.name === 'relayscope_source_up')
  expect(up?.dataPoints).toMatchObject([{ attributes: { source: 'rpc' }, value: 0 }])
  expect(JSON.stringify(resourceMetrics)).not.toContain('s3cret')
})
