import { createConnection } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FAMILIES } from '../../src/internal/contract/families.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createRedisFacilities, type RedisFacilities } from '../../src/redis/composition/facilities.js'
import { ShownFamilies } from '../../src/redis/composition/families.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createClock } from '../contract/clock.js'
import { countCommands } from './counted-client.js'
import { connectObserver } from './observer.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { createIds, live } from './world.js'

const PATHS = [
  '/',
  '/openapi.json',
  '/capabilities',
  '/sources',
  '/findings',
  '/findings/summary',
  '/users',
  '/users/ann/summary',
  '/users/missing/summary',
  '/actions',
  '/search?q=ann',
  '/actions?user_id=zoe&client_type=web',
  '/connections?limit=2',
  '/connections?client_id=client-1&limit=3',
  '/connections/count',
  '/connections/churn',
  '/connections/events?limit=3',
  '/rpc/ended?limit=3',
  '/rpc/ended/nope',
  '/connections/nope',
  '/connections/nope/history',
  '/history/streams',
  '/history/messages?stream=users%2Fann%2Flog',
  '/rpc/summary',
  '/rpc/pending',
  '/rpc/pending/nope',
  '/rpc/instances/x?user_id=ann&client_id=client-0',
  '/deduplicator/summary',
  '/deduplicator/users/ann',
  '/contexts?window_id=window-2',
  '/contexts/count',
  '/contexts/context-0-0',
  '/workers?user_id=bob',
  '/workers/count?user_id=ann',
  '/workers/available?user_id=ann',
  '/workers/tasks/nope?user_id=ann',
  '/browser-windows',
  '/browser-windows/count',
  '/browser-windows/nope',
  '/delivery/summary',
  '/delivery/nodes',
  '/delivery/churn',
  '/delivery/mailboxes?limit=2',
  '/delivery/tenants',
  '/delivery/commands?limit=2',
  '/delivery/commands?user_id=ann&state=waiting',
  '/delivery/commands?overdue=true',
  '/delivery/status?user_id=ann&client_id=client-0&command_id=nope',
  '/delivery/why?user_id=ann&client_id=client-0&command_id=nope',
  '/sites',
  '/sites/nope',
  '/sessions',
  '/sessions/nope',
  '/subscriptions',
]

/** Whether one of the paths above is of `route`. */
const isAsked = (route: string) =>
  PATHS.some((path) => new RegExp(`^${route.replace(/\{\w+\}/g, '[^/]+')}$`).test(path.split('?')[0] as string))

/** Commands that the client library sends when it connects. */
const HANDSHAKE = /^(auth|hello|client|info|select|cluster|command|readonly|ping)$/i
const READS =
  /^(get|getrange|mget|hmget|zrange|zcount|zcard|type|time|eval_ro|hget|hgetall|llen|lrange|lindex|scard|smembers)$/i

/**
 * Records every command that the observer sends until `stop`, and every one of its scripts, as [name, ...arguments].
 */
async function monitor(server: Server): Promise<{ stop(): Promise<string[][]> }> {
  const socket = createConnection(server.port, '127.0.0.1')
  let text = ''
  await new Promise<void>((resolve) => {
    socket.on('data', (data) => {
      text += data.toString('latin1')
      if (text.startsWith('+OK')) resolve()
    })
    socket.write('MONITOR\r\n')
  })
  return {
    async stop() {
      // Once this one is seen, all earlier ones have been.
      await server.cli('ECHO', 'the-end')
      while (!text.includes('the-end')) await new Promise((resolve) => socket.once('data', resolve))
      socket.destroy()
      const mine = [...(await server.cli('CLIENT', 'LIST')).matchAll(/addr=(\S+) .*user=observer/g)].map(([, at]) => at)
      let sender: string | undefined
      return text.split('\r\n').flatMap((line) => {
        const [, from] = /\[0 ([^\]]*)\]/.exec(line) ?? []
        // The commands of a script come right after the script.
        if (from !== 'lua') sender = from
        if (!mine.includes(sender)) return []
        const parts = line.slice(line.indexOf(']')).matchAll(/"((?:[^"\\]|\\.)*)"/g)
        return [[...parts].map(([, part]) => part as string)]
      })
    },
  }
}

describeRedis('an observer', () => {
  let server: Server
  let host: Connected
  let facilities: RedisFacilities
  const clock = createClock()
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
    facilities = createRedisFacilities({
      onError: null,
      client: host.client,
      deploymentId: 'watched',
      now: clock.now,
      newId: createIds(),
      rpc: { newId: createIds() },
    })
    await live(facilities, clock)
  })
  afterAll(async () => {
    await facilities.close()
    await host.close()
    await server.stop()
  })

  it.each([
    'node-redis',
    'ioredis',
  ])('sends read commands only, to keys of its deployment only, over %s', async (kind) => {
    const watch = await monitor(server)
    const observer = await connectObserver(kind, [server], 'watched')
    const router = createObserver({ client: observer.client, deploymentId: 'watched' })
    for (const path of PATHS) expect((await get(router, path)).status).toBeLessThan(405)
    const commands = (await watch.stop()).filter(([name]) => !HANDSHAKE.test(name as string))
    await observer.close()
    expect(commands.length).toBeGreaterThan(PATHS.length)
    for (const [name, ...args] of commands) {
      expect(name).toMatch(READS)
      const key = /^eval_ro$/i.test(name as string) ? args[2] : args[0]
      if (!/^time$/i.test(name as string)) expect(key).toMatch(/^relayscope:\{watched:0\}:/)
    }
  })

  it('can serve every route with exactly the published permissions', async () => {
    const observer = await connectObserver('node-redis', [server], 'watched')
    const errors: unknown[] = []
    const router = createDiagnosticsRouter({
      ...redisComposition({ client: observer.client, deploymentId: 'watched', commandTimeoutMs: 30_000 }),
      auth: noopAuth(),
      deadlineMs: 60_000,
      onError: (error) => errors.push(error),
    })
    expect(router.routes.map(({ path }) => path).filter((path) => !isAsked(path))).toEqual([])
    for (const path of PATHS) {
      const { status } = await get(router, path)
      expect([path, [200, 404].includes(status) || status]).toEqual([path, true])
    }
    expect(errors).toEqual([])
    await observer.close()
  })

  it('has no permission for commands that it does not need', async () => {
    const observer = await connectObserver('node-redis', [server], 'watched')
    const send = (...args: string[]) =>
      (observer.client as unknown as { sendCommand(args: string[]): Promise<unknown> }).sendCommand(args)
    for (const command of [
      ['SET', 'relayscope:{watched:0}:shards', '9'],
      ['DEL', 'relayscope:{watched:0}:shards'],
      ['GET', 'relayscope:{watched2:0}:shards'],
      ['GET', 'other'],
      ['EVAL', 'return 1', '0'],
      ['EVAL_RO', "return redis.call('SCAN', '0')", '0'],
      ['EVAL_RO', "return redis.call('SET', KEYS[1], '9')", '1', 'relayscope:{watched:0}:shards'],
      ['EVAL_RO', "return redis.call('GET', 'relayscope:{watched2:0}:shards')", '0'],
      ['EVAL_RO', "return redis.call('PUBLISH', 'x', 'y')", '0'],
      ['SCAN', '0'],
      ['KEYS', '*'],
      ['RANDOMKEY'],
      ['DBSIZE'],
      ['PUBLISH', 'x', 'y'],
      ['SUBSCRIBE', 'x'],
      ['CONFIG', 'GET', '*'],
      ['FLUSHALL'],
    ])
      await expect(send(...command)).rejects.toThrow(
        /NOPERM|The user executing the script|ACL failure in script|not allowed from read-only/,
      )
    await observer.close()
  })

  it('reads a page in two round trips of one command each, at any position', async () => {
    const { client, close } = await clients['node-redis']([server.port])
    const counted = countCommands(client)
    const router = createObserver({ client: counted.client, deploymentId: 'watched', now: clock.now })
    let { body } = await get(router, '/connections?limit=5')
    for (let pages = 0; body.has_more; pages++) {
      counted.reset()
      body = (await get(router, `/connections?limit=5&cursor=${body.next_cursor}`)).body
      expect([counted.waves, counted.names]).toEqual([2, ['ZRANGE', 'MGET']])
      expect(pages).toBeLessThan(20)
    }
    await close()
  })

  it('sends no command for a cursor that was not issued', async () => {
    const { client, close } = await clients['node-redis']([server.port])
    const counted = countCommands(client)
    const router = createObserver({ client: counted.client, deploymentId: 'watched' })
    await get(router, '/connections')
    counted.reset()
    for (const cursor of ['x', 'AAAA', 'a'.repeat(512), 'a'.repeat(65_536)])
      expect((await get(router, `/connections?cursor=${cursor}`)).status).toBeGreaterThan(400)
    expect(counted.names).toEqual([])
    await close()
  })

  it('leaves out every family by its name, and the others stay', () => {
    const deployment = { client: host.client, deploymentId: 'watched' }
    const all = Object.keys(redisComposition(deployment).inspectors)
    const left = Object.keys(ShownFamilies.shape).map((family) => {
      const { inspectors } = redisComposition({ ...deployment, [family]: false })
      return all.filter((name) => !(name in inspectors)).join()
    })
    expect(left).toEqual(Object.keys(FAMILIES))
  })

  it('sends no command before a request, and returns its capabilities without one', async () => {
    const counted = countCommands(host.client)
    const router: Router = createObserver({ client: counted.client, deploymentId: 'watched', contexts: false })
    const { status, body } = await get(router, '/capabilities')
    expect([status, counted.names]).toEqual([200, []])
    expect(body).toMatchObject({ registry: true, context_registry: false, history_list_streams: true })
    expect(body.extensions).toMatchObject({ deployment_id: 'watched', mode: 'shared_store' })
  })
})
