/** Each option of a store client that is not refused works: every answer is the same as without it. */
import { type ClusterOptions, Command, Cluster as IoCluster, Redis, type RedisOptions } from 'ioredis'
import { createClient, createCluster, RESP_TYPES, type RedisClientOptions, type RedisClusterOptions } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { createClock } from '../contract/clock.js'
import { collect, dataOf, event } from '../contract/event-bus.js'
import { get } from './router.js'
import { startSentinel } from './sentinel.js'
import { describeRedis, ready, type Server, startCluster, startServer } from './server.js'
import { soon } from './wait-for.js'
import { createIds, live } from './world.js'

const PATHS = [
  '/users?limit=500',
  '/actions',
  '/connections',
  '/connections?status=connected',
  '/connections/count',
  '/connections/churn',
  '/connections/events',
  '/contexts',
  '/browser-windows',
  '/workers/available?user_id=ann',
  '/history/streams',
  '/rpc/pending',
  '/rpc/ended',
  '/rpc/summary',
  '/sessions',
  '/sites',
  '/deduplicator/summary',
  '/delivery/summary',
  '/delivery/nodes',
  '/delivery/mailboxes',
  '/delivery/commands',
  '/delivery/why?user_id=ada&client_id=laptop&command_id=waits',
  '/delivery/status?user_id=ada&client_id=laptop&command_id=waits',
  '/findings',
]

interface Attempted {
  attempts: { confirmed: number }
}

/** What changes from run to run: ids, times, and counters, which a node writes a little later. */
const VARIES =
  /^(.*_at|.*_ms|as_of|since|cursor|next_cursor|version|incarnation|request_id|deployment_id|last_position|attempts_per_second|counters|latency|sample_size|examined)$/
const steady = (_key: string, value: unknown) =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => !VARIES.test(key)))
    : value

/** Lives a life on `client`, and returns all results: of the facilities, of the bus and of the routes. */
async function outcomes(client: RedisClient, deploymentId: string, shards: number): Promise<Record<string, unknown>> {
  const clock = createClock()
  const errors: unknown[] = []
  const store = { client, deploymentId, shards, now: clock.now, onError: (error: unknown) => void errors.push(error) }
  const rpc = { newId: createIds() }
  const facilities = createRedisFacilities({ ...store, nodeId: 'n', newId: createIds(), rpc })
  onTestFinished(() => void facilities.close())
  const { connections, deduplicator, history, sites, contexts, dispatcher, bus } = facilities
  await live(facilities, clock)
  const ada = { user_id: 'ada', client_id: 'laptop', instance_id: 'i' }
  const out: Record<string, unknown> = {}
  const { connection_id } = await connections.connect({ ...ada, client_type: 'web' })
  out.heartbeat = await connections.heartbeat(connection_id)
  const claim = { user_id: 'ada', message_id: '1' }
  out.claims = [await deduplicator.claim(claim), await deduplicator.claim(claim)]
  const message = {
    ...ada,
    stream: 'users/ada/s',
    message_id: '01',
    kind: 'event',
    payload: { text: '\ufeff1' },
  } as const
  out.retained = [(await history.retain(message)).isNew, (await history.retain(message)).isNew]
  out.site = [(await sites.put({ site_id: '7', owner: 'ada', mode: 'observe' })).created, await sites.delete('7')]
  await contexts.report({ ...ada, context_id: '5', client_type: 'web', ownership: 'worker', status: 'idle' })
  out.context = [await contexts.close('5'), await contexts.close('5')]
  const reader = bus.subscribe('t')
  await bus.prepare('t')
  for (const n of [1, 2]) await bus.publish('t', event(n))
  out.events = dataOf(await collect(reader, 2))
  const delivered: string[] = []
  await dispatcher.attach(ada, ({ command_id }) => void delivered.push(command_id))
  for (const command_id of ['1', 'waits'])
    await dispatcher.dispatch({ user_id: 'ada', client_id: 'laptop', command_id, action: 'a', payload: {} })
  await soon(() => expect(delivered).toEqual(['1', 'waits']))
  const router = createDiagnosticsRouter({ ...redisComposition(store), auth: noopAuth(), now: clock.now })
  // The end of an attempt is recorded after the handler has returned.
  const confirmed = async () => (await get(router, '/delivery/commands?user_id=ada')).body.items
  await soon(async () => expect((await confirmed()).map((item: Attempted) => item.attempts.confirmed)).toEqual([1, 1]))
  out.acknowledged = await dispatcher.acknowledge({ ...ada, command_id: '1' })
  out.cancelled = (await dispatcher.cancel({ ...ada, command_id: '1' })) as unknown
  for (const path of PATHS) {
    out[path] = JSON.parse(JSON.stringify(await get(router, path), steady))
  }
  out.disconnected = [
    await connections.disconnect(connection_id, 'x'),
    await connections.disconnect(connection_id, 'x'),
  ]
  await facilities.close()
  out.errors = errors.map(String)
  return out
}

/** Options that change no reply, only when and how commands are sent. */
const QUIET_NODE_REDIS: Partial<RedisClientOptions> = {
  commandOptions: { asap: true, timeout: 300_000 },
  disableClientInfo: true,
  disableOfflineQueue: true,
  name: 'n',
  commandsQueueMaxLength: 5_000,
  pingInterval: 500,
}
const QUIET_IOREDIS: RedisOptions = {
  showFriendlyErrorStack: true,
  commandTimeout: 60_000,
  socketTimeout: 60_000,
  maxRetriesPerRequest: null,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  connectionName: 'n',
  disableClientInfo: true,
}

let deployments = 0

describeRedis('a client with options', () => {
  let server: Server
  let cluster: readonly Server[]
  /** What a client without options sees. */
  let plain: { single: Record<string, unknown>; cluster: Record<string, unknown> }
  const ports = () => cluster.map(({ port }) => port)

  const ends: (() => unknown)[] = []
  afterAll(() => Promise.all(ends.map((end) => end())))
  const id = () => `o${++deployments}`

  async function ofNodeRedis(options: Partial<RedisClientOptions> = {}) {
    const client = createClient({ url: `redis://127.0.0.1:${server.port}`, ...options } as RedisClientOptions)
    client.on('error', () => {})
    await client.connect()
    ends.push(() => client.destroy())
    return client
  }
  async function ofIoRedis(options: RedisOptions = {}) {
    const client = new Redis(server.port, '127.0.0.1', options)
    ends.push(() => client.disconnect())
    if (!options.lazyConnect) await ready(client)
    return client
  }
  async function clusterOfNodeRedis(options: Partial<RedisClusterOptions> = {}) {
    const rootNodes = ports().map((port) => ({ url: `redis://127.0.0.1:${port}` }))
    const client = createCluster({ rootNodes, ...options } as RedisClusterOptions)
    client.on('error', () => {})
    await client.connect()
    ends.push(() => client.destroy())
    return client
  }
  async function clusterOfIoRedis(options: ClusterOptions = {}) {
    const nodes = ports().map((port) => ({ host: '127.0.0.1', port }))
    const client = new IoCluster(nodes, options)
    ends.push(() => client.disconnect())
    if (!options.lazyConnect) await ready(client)
    return client
  }

  beforeAll(async () => {
    const [single, several] = await Promise.all([startServer(), startCluster()])
    server = single
    cluster = several.servers
    ends.push(() => server.stop(), several.stop)
  })

  async function expectPlain(client: RedisClient, kind: 'single' | 'cluster') {
    plain ??= {
      single: await outcomes(await ofIoRedis(), id(), 1),
      cluster: await outcomes(await clusterOfIoRedis(), id(), 5),
    }
    expect(plain[kind]).toMatchObject({ heartbeat: true, claims: [true, false], retained: [true, false], errors: [] })
    expect(await outcomes(client, id(), kind === 'single' ? 1 : 5)).toEqual(plain[kind])
  }

  const typeMapping = {
    [RESP_TYPES.NUMBER]: String,
    [RESP_TYPES.DOUBLE]: String,
    [RESP_TYPES.BLOB_STRING]: Buffer,
    [RESP_TYPES.SIMPLE_STRING]: Buffer,
    [RESP_TYPES.MAP]: Map,
    [RESP_TYPES.SET]: Set,
  }

  describe('of node-redis', () => {
    it.each<[name: string, options: object]>([
      ['defaults only', {}],
      ['RESP 2', { RESP: 2 }],
      ['commandOptions.typeMapping', { RESP: 3, commandOptions: { typeMapping } }],
      ['commandOptions.typeMapping with RESP 2', { RESP: 2, commandOptions: { typeMapping } }],
      ['clientSideCache', { RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0, evictPolicy: 'LRU' } }],
      ['emitInvalidate', { RESP: 3, emitInvalidate: true }],
      ['database, keyPrefix and all that changes no reply', { database: 3, keyPrefix: 'app:', ...QUIET_NODE_REDIS }],
    ])('gets the same answers with %s', async (_, options) => {
      await expectPlain(await ofNodeRedis(options), 'single')
    })

    it('gets the same answers as a view with other types', async () => {
      const client = await ofNodeRedis()
      await expectPlain(client.withTypeMapping(typeMapping as never) as unknown as RedisClient, 'single')
    })

    it.each<[name: string, options: object]>([
      ['RESP 3', { RESP: 3 }],
      ['RESP 2 and useReplicas', { RESP: 2, useReplicas: true }],
      ['minimizeConnections', { minimizeConnections: true }],
      ['commandOptions.typeMapping', { RESP: 3, commandOptions: { typeMapping } }],
      ['defaults', { defaults: { commandOptions: { typeMapping }, disableOfflineQueue: true }, keyPrefix: 'app:' }],
    ])('gets the same answers from a Cluster with %s', async (_, options) => {
      await expectPlain(await clusterOfNodeRedis(options), 'cluster')
    })
  })

  it('gets the same answers from a Cluster of redis 5, which does not say whether it is ready', async () => {
    const client = await clusterOfNodeRedis()
    Object.defineProperty(client, 'isReady', { value: undefined })
    await expectPlain(client, 'cluster')
  })

  describe('of ioredis', () => {
    it.each<[name: string, options: RedisOptions]>([
      ['stringNumbers', { stringNumbers: true }],
      ['stringNumbers and enableAutoPipelining', { stringNumbers: true, enableAutoPipelining: true }],
      ['enableAutoPipelining', { enableAutoPipelining: true }],
      ['protocol 3', { protocol: 3 }],
      [
        'protocol 3, replyMapping and stringNumbers',
        { protocol: 3, replyMapping: 'resp3', stringNumbers: true } as object,
      ],
      ['protocol 3 and replyMapping', { protocol: 3, replyMapping: 'resp3' } as object],
      ['enableOfflineQueue off and enableReadyCheck off', { enableOfflineQueue: false, enableReadyCheck: false }],
      ['lazyConnect', { lazyConnect: true }],
      // Scripts that the store does not know yet are errors too.
      ['reconnectOnError', { reconnectOnError: () => true }],
      ['reconnectOnError, which sends the command again', { reconnectOnError: () => 2 }],
      ['db and all that changes no reply', { db: 2, ...QUIET_IOREDIS }],
    ])('gets the same answers with %s', async (_, options) => {
      await expectPlain(await ofIoRedis(options), 'single')
    })

    it.each<[name: string, options: ClusterOptions]>([
      ['stringNumbers', { redisOptions: { stringNumbers: true } }],
      ['enableAutoPipelining', { enableAutoPipelining: true }],
      ['scaleReads', { scaleReads: 'slave' }],
      ['scaleReads and enableAutoPipelining', { scaleReads: 'all', enableAutoPipelining: true }],
      ['protocol 3', { redisOptions: { protocol: 3 } }],
      [
        'enableOfflineQueue off and showFriendlyErrorStack',
        { enableOfflineQueue: false, showFriendlyErrorStack: true },
      ],
      ['lazyConnect', { lazyConnect: true }],
    ])('gets the same answers from a Cluster with %s', async (_, options) => {
      await expectPlain(await clusterOfIoRedis(options), 'cluster')
    })

    it('gets the same answers from a Cluster with natMap, dnsLookup and clusterRetryStrategy', async () => {
      const looked = new Set<string>()
      const client = new IoCluster([{ host: 'cluster.test', port: ports()[0] }] as never, {
        natMap: (key) => ({ host: 'localhost', port: Number(key.split(':').at(-1)) }),
        dnsLookup(host, found) {
          looked.add(host)
          found(null, '127.0.0.1')
        },
        clusterRetryStrategy: () => 50,
      })
      ends.push(() => client.disconnect())
      await ready(client)
      await expectPlain(client, 'cluster')
      expect([...looked]).toContain('cluster.test')
      expect(client.nodes().map(({ options: { host } }) => host)).toEqual(Array(3).fill('localhost'))
    })

    it.each<[name: string, options: (port: number) => RedisOptions]>([
      ['sentinels', () => ({})],
      ['sentinels and role', () => ({ role: 'master', sentinelRetryStrategy: () => 50 })],
      [
        'sentinels, natMap and failoverDetector',
        (port) => ({ natMap: { [`127.0.0.1:${port}`]: { host: 'localhost', port } }, failoverDetector: true }),
      ],
    ])('gets the same answers with %s', async (_, options) => {
      const sentinel = await startSentinel('main', server.port)
      onTestFinished(() => sentinel.stop())
      const client = new Redis({
        sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
        name: 'main',
        ...options(server.port),
      })
      onTestFinished(() => client.disconnect())
      await ready(client)
      await expectPlain(client, 'single')
    })

    it('gets the same answers whatever transformers the application has set for commands of ioredis', async () => {
      const names = ['evalsha', 'mget', 'eval_ro', 'fcall']
      const { reply, argument } = (Command as unknown as { _transformer: Record<string, Record<string, unknown>> })
        ._transformer as { reply: Record<string, unknown>; argument: Record<string, unknown> }
      for (const name of names) {
        Command.setReplyTransformer(name, () => 'transformed')
        Command.setArgumentTransformer(name, () => ['transformed'])
      }
      try {
        await expectPlain(await ofIoRedis(), 'single')
      } finally {
        for (const name of names) {
          delete reply[name]
          delete argument[name]
        }
      }
    })
  })

  describe('of a user with a password', () => {
    const [username, password] = ['app', 'hush']
    beforeAll(() => server.cli('ACL', 'SETUSER', username, 'on', `>${password}`, '~*', '&*', '+@all'))
    const at = (port: number) => `redis://${username}:${password}@127.0.0.1:${port}`
    const isApp = async (whoAmI: Promise<unknown>) => expect(String(await whoAmI)).toBe(username)

    it.each<[name: string, options: () => object]>([
      ['username and password', () => ({ username, password })],
      ['url', () => ({ url: at(server.port) })],
      [
        'credentialsProvider, asynchronous',
        () => ({
          credentialsProvider: {
            type: 'async-credentials-provider',
            credentials: async () => ({ username, password }),
          },
        }),
      ],
      [
        'credentialsProvider, streaming',
        () => ({
          credentialsProvider: {
            type: 'streaming-credentials-provider',
            subscribe: async () => [{ username, password }, { dispose() {} }],
            onReAuthenticationError() {},
          },
        }),
      ],
    ])('gets the same answers with %s of node-redis', async (_, options) => {
      const client = await ofNodeRedis(options())
      await isApp(client.sendCommand(['ACL', 'WHOAMI']))
      await expectPlain(client, 'single')
    })

    it('gets the same answers with username and password of ioredis', async () => {
      const client = await ofIoRedis({ username, password })
      await isApp(client.call('ACL', 'WHOAMI'))
      await expectPlain(client, 'single')
    })
  })

  it('keeps deployments with the same id in two databases apart, also their events', async () => {
    const [one, two] = await Promise.all([ofNodeRedis(), ofIoRedis({ db: 1 })])
    const [a, b] = [one, two].map((client) => createRedisFacilities({ client, deploymentId: 'same', onError: null }))
    if (!a || !b) throw new Error('both are created')
    onTestFinished(async () => void (await Promise.all([a.close(), b.close()])))
    const readers = [a.bus.subscribe('t'), b.bus.subscribe('t')]
    await Promise.all([a.bus.prepare('t'), b.bus.prepare('t')])
    await a.bus.publish('t', event(1))
    await b.bus.publish('t', event(2))
    const [first, second] = await Promise.all(readers.map((reader) => collect(reader, 1)))
    expect([dataOf(first ?? []), dataOf(second ?? [])]).toEqual([[1], [2]])
    expect(readers.map(({ position }) => position.seq)).toEqual([1, 1])
  })
})
