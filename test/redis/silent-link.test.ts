/** A connection that dies silently: callers time out, and clients that are configured for it recover. */
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sleep } from '../../src/internal/async/timer.js'
import type { SiteEventBus, Subscription } from '../../src/internal/contract/event-bus.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { watchLink } from '../../src/redis/store/watch-link.js'
import { command, connection, first } from '../contract/delivery-commands.js'
import { collect, dataOf, event } from '../contract/event-bus.js'
import { createObserver, get } from './router.js'
import {
  ALIKE,
  type Connected,
  clients,
  describeRedis,
  ready,
  type Server,
  startCluster,
  startServer,
} from './server.js'
import { type SilentLink, startSilentLink } from './silent-link.js'
import { soon } from './wait-for.js'

// Longer than a busy machine keeps a living link waiting.
const SILENT_MS = 1_000
const QUICK = { commandTimeoutMs: 1_000 }

/** The clients as documented, with shorter timeouts. */
const ATTENTIVE = {
  async 'node-redis'(port: number): Promise<Connected> {
    const client = createClient({
      ...ALIKE,
      url: `redis://127.0.0.1:${port}`,
      socket: { reconnectStrategy: 50 },
    })
    client.on('error', () => {})
    watchLink(client, { silentMs: SILENT_MS })
    await client.connect()
    return { client, close: async () => client.destroy() }
  },
  async ioredis(port: number): Promise<Connected> {
    const client = new Redis(port, '127.0.0.1', { socketTimeout: SILENT_MS, retryStrategy: () => 50 })
    await ready(client)
    return { client, close: async () => client.disconnect() }
  },
  async 'node-redis cluster'(port: number): Promise<Connected> {
    const client = createCluster({
      ...ALIKE,
      rootNodes: [{ url: `redis://127.0.0.1:${port}` }],
      defaults: { socket: { reconnectStrategy: 50 } },
    })
    client.on('error', () => {})
    watchLink(client, { silentMs: SILENT_MS })
    await client.connect()
    return { client, close: async () => client.destroy() }
  },
  async 'ioredis cluster'(port: number): Promise<Connected> {
    const client = new Cluster([{ host: '127.0.0.1', port }], { redisOptions: { socketTimeout: SILENT_MS } })
    await ready(client)
    return { client, close: async () => client.disconnect() }
  },
}

/** Event 2 was lost, and appears as a gap; so may the next ones, until the listener is back. */
async function hearsAgain(reader: Subscription, source: SiteEventBus): Promise<void> {
  for (let n = 3; ; n++) {
    const [next] = await collect(reader, 1)
    if (next?.type === 'event') return expect(next.event.data).toBe(n - 1)
    expect(next).toMatchObject({ type: 'gap', reason: 'link_lost', dropped: 1, first_seq: n - 1 })
    await source.publish('t', event(n))
  }
}

const reachable = (client: RedisClient) => createObserver({ client, deploymentId: 'any', ...QUICK })

describeRedis('a connection that dies silently', () => {
  let server: Server
  let direct: Connected
  beforeAll(async () => {
    server = await startServer()
    direct = await clients.ioredis([server.port])
  })
  afterAll(async () => {
    await direct?.close()
    await server?.stop()
  })

  async function startLink(port = server.port): Promise<SilentLink> {
    const link = await startSilentLink(port)
    onTestFinished(() => link.close())
    return link
  }

  describe.each(['node-redis', 'ioredis'] as const)('over %s', (kind) => {
    async function start(connect: (port: number) => Promise<Connected>, deploymentId: string) {
      const link = await startLink()
      const { client, close } = await connect(link.port)
      const told: unknown[] = []
      const far = { client, deploymentId, onError: (error: unknown) => told.push(error), ...QUICK }
      const near = { client: direct.client, deploymentId }
      const [host, other] = [createRedisFacilities(far), createRedisFacilities(near)]
      const [bus, source] = [createRedisEventBus(far), createRedisEventBus(near)]
      onTestFinished(async () => {
        await Promise.all([host.close(), other.close(), bus.close(), source.close()])
        await close()
      })
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      await source.publish('t', event(1))
      expect(dataOf(await collect(reader, 1))).toEqual([1])
      return { link, far, host, other, bus, source, reader, told }
    }

    it('is detected by a client configured for it, even while it keeps sending, and everything recovers', async () => {
      const { link, far, host, other, source, reader, told } = await start(ATTENTIVE[kind], `silent-${kind}`)
      const router = createObserver(far)
      const tab = connection()
      await host.connections.connect({ ...first, client_type: 'web' })
      await host.dispatcher.attach(first, tab.deliver)
      // In its time, which on a busy machine is not the first that it has.
      await soon(async () => expect((await get(router, '/connections')).body.items).toHaveLength(1))

      link.silence()
      const asking = setInterval(() => void get(router, '/connections'), SILENT_MS / 4)
      onTestFinished(() => clearInterval(asking))
      for (const path of ['/connections', '/users', '/delivery/summary']) {
        const { status, body } = await get(router, path)
        expect([status, body.code]).toEqual([503, 'inspector_unavailable'])
      }
      await expect(host.connections.connect({ ...first, client_type: 'web' })).rejects.toMatchObject({
        code: 'unavailable',
      })
      await soon(() => expect(told.filter((error) => /unavailable/.test(String(error)))).not.toHaveLength(0))
      await source.publish('t', event(2))
      await other.dispatcher.dispatch(command('c1'))

      link.heal()
      await soon(async () => expect((await get(router, '/connections')).status).toBe(200))
      const near = createObserver({ client: direct.client, deploymentId: far.deploymentId })
      // With data for diagnosis if it fails.
      await soon(async () => {
        const { body } = await get(near, '/delivery/status?user_id=ada&client_id=tab&command_id=c1')
        expect(tab.ids(), JSON.stringify({ body, told: told.map(String) })).toEqual(['c1'])
      })
      await hearsAgain(reader, source)
    })

    it('is detected by the bus if only its listener is affected, for existing and new topics', async () => {
      const { link, bus, source, reader } = await start((port) => clients[kind]([port]), `deaf-${kind}`)
      link.silence('subscribers')
      // The topic that is read misses nothing so far: it is detected because the other gets no reply.
      await soon(() => bus.prepare('new'))
      const other = bus.subscribe('new')
      await source.publish('new', event(1))
      expect(dataOf(await collect(other, 1))).toEqual([1])
      link.silence('subscribers')
      await source.publish('t', event(2))
      await hearsAgain(reader, source)
    })
  })

  it('is not assumed after the process was suspended', async () => {
    const client = createClient({ ...ALIKE, url: `redis://127.0.0.1:${server.port}` })
    let lost = 0
    client.on('error', () => {}).on('end', () => lost++)
    watchLink(client, { silentMs: SILENT_MS })
    await client.connect()
    onTestFinished(() => client.destroy())
    for (const end = performance.now() + 1.5 * SILENT_MS; performance.now() < end; );
    await sleep(SILENT_MS / 2)
    expect(lost).toBe(0)
  })

  it('is replaced by one connection, and each command gets its own reply', async () => {
    const link = await startLink()
    const client = createClient({ ...ALIKE, url: `redis://127.0.0.1:${link.port}`, socket: { reconnectStrategy: 50 } })
    let attempts = 0
    client.on('error', () => {}).on('connect', () => attempts++)
    const stopWatching = watchLink(client, { silentMs: 200 })
    await client.connect()
    onTestFinished(() => client.destroy())
    link.silence()
    await soon(() => expect(attempts).toBeGreaterThan(2))
    expect(link.connections).toBeLessThanOrEqual(2)
    link.heal()
    const said = Array.from({ length: 20 }, (_, n) => `${n}`)
    const heard: unknown[] = []
    // On a busy machine a living link may be silent for so short a time as well.
    for (const word of said) heard.push(await soon(() => client.sendCommand(['ECHO', word])))
    expect(heard).toEqual(said)
    await soon(() => expect(link.connections).toBe(1))
    stopWatching()
  })

  it('does not open a client again that was ended after watching was stopped', async () => {
    const link = await startLink()
    const client = createClient({ ...ALIKE, url: `redis://127.0.0.1:${link.port}`, socket: { reconnectStrategy: 50 } })
    let attempts = 0
    client.on('error', () => {}).on('connect', () => attempts++)
    const stopWatching = watchLink(client, { silentMs: 200 })
    await client.connect()
    link.silence()
    await soon(() => expect(attempts).toBe(2))
    stopWatching()
    client.destroy()
    await soon(() => expect([client.isOpen, link.connections]).toEqual([false, 0]))
  })

  describe.each(['node-redis cluster', 'ioredis cluster'] as const)('over %s', (kind) => {
    it('is detected for each of the nodes', async () => {
      const cluster = await startCluster(1)
      onTestFinished(() => cluster.stop())
      const node = cluster.servers[0] as Server
      const link = await startLink(node.port)
      await node.cli('CONFIG', 'SET', 'cluster-announce-ip', '127.0.0.1', 'cluster-announce-port', String(link.port))
      const { client, close } = await ATTENTIVE[kind](link.port)
      onTestFinished(close)
      const router = reachable(client)
      expect((await get(router, '/contexts')).status).toBe(200)
      link.silence()
      const asking = setInterval(() => void get(router, '/contexts'), SILENT_MS / 4)
      onTestFinished(() => clearInterval(asking))
      expect((await get(router, '/contexts')).status).toBe(503)
      link.heal()
      await soon(async () => expect((await get(router, '/contexts')).status).toBe(200))
    })
  })

  it('is watched only for a supported client, with a valid silentMs', () => {
    const client = createClient()
    expect(() => watchLink(new Redis({ lazyConnect: true }) as never)).toThrow(TypeError)
    for (const silentMs of [0, -1, Number.NaN, 2 ** 31])
      expect(() => watchLink(client, { silentMs })).toThrow(RangeError)
  })
})
