import { afterAll, beforeAll, expect, it } from 'vitest'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createMetrics, type Metrics } from '../../src/metrics/index.js'
import { createRedisFacilities, type RedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createClock } from '../contract/clock.js'
import { until } from '../end-to-end/live-host-process.js'
import { parseText, seriesValue } from '../metrics/parse.js'
import { describeStores } from './matrix.js'
import { connectObserver } from './observer.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { createIds, live } from './world.js'

const scrape = async (metrics: Metrics) =>
  parseText(
    await (
      await metrics(
        new Request('http://localhost/metrics', { headers: { accept: 'application/openmetrics-text;version=1.0.0' } }),
      )
    ).text(),
    true,
  )

type Families = Awaited<ReturnType<typeof scrape>>

/**
 * Expected differences: source and duration; a capacity that is per shard; and nodes, which report by the time of a
 * loop rather than the clock of this test.
 */
const OWN = /^relayscope_(deployment|source_duration_seconds|deduplicator_capacity|delivery_node(s|_\w+))$/

const alike = (families: Families) =>
  [...families]
    .filter(([name]) => !OWN.test(name))
    .flatMap(([, { samples }]) => samples.map((sample) => JSON.stringify(sample)))
    .sort()

describeStores('metrics', (kind, place, servers) => {
  let memory: ReturnType<typeof createMemoryFacilities>
  let facilities: RedisFacilities
  let observer: Connected
  let [direct, shared]: Metrics[] = []

  beforeAll(async () => {
    const where = place()
    const clock = createClock()
    const options = () => ({
      now: clock.now,
      rpc: { newId: createIds() },
      newId: createIds(),
      bus: { newId: () => 'epoch' },
      nodeId: 'node',
      connections: { nodeId: null },
    })
    memory = createMemoryFacilities(options())
    await live(memory, clock)
    clock.advance(createClock().now() - clock.now())
    facilities = createRedisFacilities({ ...where, ...options() })
    await live(facilities, clock)
    observer = await connectObserver(kind, servers(), where.deploymentId)
    const { deploymentId } = where
    // Nothing waits for the deadline, and a late source on a busy machine would be missing.
    const patient = { auth: noopAuth(), now: clock.now, deadlineMs: 20_000 }
    direct = createMetrics({ ...memoryComposition(memory), ...patient })
    shared = createMetrics({
      ...redisComposition({ client: observer.client, deploymentId, now: clock.now }),
      ...patient,
    })
  })
  afterAll(async () => {
    await facilities?.close()
    await memory?.close()
    await observer?.close()
  })

  it('are equal for both compositions, and complete for a read-only observer', async () => {
    const [own, theirs] = [await scrape(direct as Metrics), await scrape(shared as Metrics)]
    expect(alike(theirs)).toEqual(alike(own))
    for (const { labels, value } of theirs.get('relayscope_source_up')?.samples ?? [])
      expect([labels, value]).toEqual([labels, 1])
    expect(theirs.get('relayscope_source_up')?.samples).toHaveLength(10)
    expect(seriesValue(theirs, 'relayscope_connections', { status: 'connected' })).toBeGreaterThan(5)
    expect(seriesValue(theirs, 'relayscope_sessions', { state: 'active' })).toBeGreaterThan(0)
    expect(theirs.get('relayscope_deployment')?.samples[0]?.labels.mode).toBe('shared_store')
  })
})

describeRedis('metrics of a store that goes down', () => {
  let server: Server
  let connected: Connected
  beforeAll(async () => {
    server = await startServer()
    connected = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await connected?.close()
    await server?.stop()
  })

  it('report each source as down, without its values, within the deadline, and recover with it', async () => {
    const { client } = connected
    const metrics = createMetrics({
      ...redisComposition({ client, deploymentId: 'd' }),
      auth: noopAuth(),
      onError: null,
      deadlineMs: 10_000,
    })
    const ups = (families: Families) => families.get('relayscope_source_up')?.samples.map(({ value }) => value)
    expect(ups(await scrape(metrics))).toEqual(Array(10).fill(1))
    const { port } = server
    await server.stop()
    const lost = await scrape(metrics)
    expect(ups(lost)).toEqual(Array(10).fill(0))
    expect([...lost.keys()].filter((name) => !/^relayscope_(deployment$|source_)/.test(name))).toEqual([])
    server = await startServer({ port })
    await until('every source again', async () =>
      ups(await scrape(metrics))?.every((value) => value === 1) ? true : undefined,
    )
  })
})
