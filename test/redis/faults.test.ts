import { once } from 'node:events'
import { createServer, type Socket, type Server as TcpServer } from 'node:net'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createStore } from '../../src/redis/store/store.js'
import { createObserver, get } from './router.js'
import { ALIKE, clients, describeRedis, freePort, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

const context = { context_id: 'ctx', user_id: 'ann', client_id: 'c', client_type: 'web', status: 'idle' } as const
// Longer than a busy machine needs: an earlier response is caused by the command timeout.
const DEADLINE = 60_000
const QUICK = { commandTimeoutMs: 400 }

describeRedis('a store that fails', () => {
  let server: Server
  const ends: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const end of ends.splice(0)) await end()
  })

  describe.each(['node-redis', 'ioredis'] as const)('over %s', (kind) => {
    it('returns 503 before the deadline while it does not reply, and 200 once it does', async () => {
      const { client, close } = await clients[kind]([server.port])
      ends.push(close)
      const deploymentId = `paused-${kind}`
      const facilities = createRedisFacilities({ client, deploymentId, onError: null })
      ends.unshift(() => facilities.close())
      await facilities.contexts.report(context)
      const router = createObserver({ client, deploymentId, ...QUICK }, DEADLINE)
      await soon(async () => expect((await get(router, '/contexts/ctx')).status).toBe(200))
      server.pause()
      ends.push(server.resume)
      for (const path of ['/contexts', '/contexts/ctx', '/users', '/deduplicator/summary']) {
        const { status, body } = await get(router, path)
        expect([status, body.code]).toEqual([503, 'inspector_unavailable'])
      }
      expect((await get(router, '/capabilities')).status).toBe(200)
      server.resume()
      await soon(async () => expect((await get(router, '/contexts/ctx')).body).toMatchObject({ context_id: 'ctx' }))
    })

    it('returns 504 when the deadline is shorter than the command timeout', async () => {
      const { client, close } = await clients[kind]([server.port])
      ends.push(close)
      const router = createObserver({ client, deploymentId: `late-${kind}` }, 200)
      server.pause()
      ends.push(server.resume)
      const { status, body } = await get(router, '/contexts')
      expect([status, body.code]).toEqual([504, 'inspector_timeout'])
      server.resume()
    })

    it('queues commands above a thousand unanswered ones, and never sends those that timed out', async () => {
      const { client, close } = await clients[kind]([server.port])
      ends.push(close)
      const store = createStore({ client, deploymentId: `flood-${kind}`, commandTimeoutMs: 1_500 })
      const key = store.key(0, 'x')
      const outcomes = (count: number, args: string[]) =>
        Promise.all(Array.from({ length: count }, () => store.command(args, key).catch((error) => error.outcome)))
      server.pause()
      ends.push(server.resume)
      const sent = outcomes(1_000, ['GET', key])
      // By the next turn the client has written them.
      await new Promise(setImmediate)
      const waiting = outcomes(500, ['SET', key, 'late'])
      expect(new Set(await sent)).toEqual(new Set(['unknown']))
      expect(new Set(await waiting)).toEqual(new Set(['not_run']))
      // Given up long ago, and still in the client's hands.
      expect(await outcomes(1, ['SET', key, 'late'])).toEqual(['not_run'])
      const next = store.command(['GET', key], key)
      server.resume()
      expect(await next).toBe(null)
    })

    it('sends a burst of any size, a thousand at a time', async () => {
      const { client, close } = await clients[kind]([server.port])
      ends.push(close)
      const store = createStore({ client, deploymentId: `burst-${kind}`, commandTimeoutMs: 20_000 })
      const key = store.key(0, 'x')
      const answers = await Promise.all(Array.from({ length: 5_000 }, () => store.command(['INCR', key], key)))
      expect(answers).toEqual(Array.from({ length: 5_000 }, (_, i) => i + 1))
    })

    it('never mixes up replies, however many callers time out in between', async () => {
      const { client, close } = await clients[kind]([server.port])
      ends.push(close)
      const store = createStore({ client, deploymentId: `mixed-${kind}` })
      const key = (i: number) => store.key(0, `k${i}`)
      await Promise.all(Array.from({ length: 200 }, (_, i) => store.command(['SET', key(i), `v${i}`], key(i))))
      const answers = await Promise.all(
        Array.from({ length: 600 }, async (_, i) => {
          const caller = new AbortController()
          const answer = store.command(['GET', key(i % 200)], key(i % 200), { signal: caller.signal })
          if (i % 3 === 0) caller.abort('gone')
          return answer.catch((reason) => reason)
        }),
      )
      answers.forEach((answer, i) => {
        expect(answer).toBe(i % 3 === 0 ? 'gone' : `v${i % 200}`)
      })
    })

    it('returns 503 while it is down, and recovers when it is back', async () => {
      const port = await freePort()
      let own = await startServer({ port })
      ends.push(() => own.stop())
      const { client, close } = await clients[kind]([port])
      ends.push(close)
      const router = createObserver({ client, deploymentId: 'down', ...QUICK }, DEADLINE)
      const facilities = createRedisFacilities({ client, deploymentId: 'down', onError: null })
      ends.unshift(() => facilities.close())
      await facilities.contexts.report(context)
      await own.kill()
      for (let i = 0; i < 3; i++) expect((await get(router, '/contexts')).status).toBe(503)
      await expect(facilities.contexts.report(context)).rejects.toMatchObject({ code: 'unavailable' })
      own = await startServer({ port })
      await soon(async () => expect((await get(router, '/contexts')).status).toBe(200))
      // A fresh server knows no script, and nothing of the report that was given up.
      expect((await get(router, '/contexts')).body.items).toEqual([])
      await facilities.contexts.report(context)
      expect((await get(router, '/contexts')).body.items).toHaveLength(1)
    })

    it('can be composed before there is a server', async () => {
      const port = await freePort()
      const client =
        kind === 'ioredis'
          ? new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 })
          : createClient({ ...ALIKE, url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } })
      if ('destroy' in client) {
        ends.push(() => client.destroy())
        const router = createObserver({ client: client, deploymentId: 'early', ...QUICK })
        // Not even opened: nothing to wait for.
        expect((await get(router, '/contexts')).status).toBe(503)
        client.connect().catch(() => {})
      } else ends.push(() => client.disconnect())
      const router = createObserver({ client: client, deploymentId: 'early', ...QUICK }, DEADLINE)
      expect((await get(router, '/capabilities')).status).toBe(200)
      expect((await get(router, '/contexts')).status).toBe(503)
      const own = await startServer({ port })
      ends.push(() => own.stop())
      await soon(async () => expect((await get(router, '/contexts')).status).toBe(200))
    })

    it('returns 503 without permissions or without memory', async () => {
      const { client, close } = await clients[kind]([server.port])
      ends.push(close)
      const deploymentId = `nope-${kind}`
      await server.cli(
        'ACL',
        'SETUSER',
        'blind',
        'on',
        '>x',
        'resetkeys',
        '~relayscope:{other:*',
        '-@all',
        '+@connection',
        '+info',
        '+get',
      )
      const url = `redis://blind:x@127.0.0.1:${server.port}`
      const blind = kind === 'ioredis' ? new Redis(url) : await createClient({ url }).connect()
      ends.push(() => ('destroy' in blind ? blind.destroy() : blind.disconnect()))
      const router = createObserver({ client: blind, deploymentId })
      for (const path of ['/contexts', '/users', '/deduplicator/summary'])
        expect((await get(router, path)).status).toBe(503)
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      ends.push(() => server.cli('CONFIG', 'SET', 'maxmemory', '0'))
      const facilities = createRedisFacilities({ client, deploymentId, onError: null })
      const { contexts } = facilities
      ends.unshift(() => facilities.close())
      await expect(contexts.report(context)).rejects.toMatchObject({ code: 'unavailable' })
      await server.cli('CONFIG', 'SET', 'maxmemory', '0')
      expect(await contexts.report(context)).toMatchObject({ context_id: 'ctx' })
    })
  })

  describe('with unexpected replies', () => {
    let fake: TcpServer
    let sockets: Socket[] = []
    let reply = ''
    let port: number
    beforeAll(async () => {
      fake = createServer((socket) => {
        sockets.push(socket)
        socket.on('error', () => {})
        socket.on('data', () => {
          if (reply === 'reset') socket.resetAndDestroy()
          else socket.write(reply)
        })
      }).listen(0, '127.0.0.1')
      await once(fake, 'listening')
      port = (fake.address() as { port: number }).port
    })
    afterAll(async () => {
      for (const socket of sockets) socket.destroy()
      fake.close()
    })

    it.each([
      ['LOADING', '-LOADING Redis is loading the dataset in memory\r\n'],
      ['READONLY', "-READONLY You can't write against a read only replica.\r\n"],
      ['CLUSTERDOWN', '-CLUSTERDOWN The cluster is down\r\n'],
      ['NOAUTH', '-NOAUTH Authentication required.\r\n'],
      ['BUSY', '-BUSY Redis is busy running a script.\r\n'],
      ['half a reply', '$50\r\nhalf'],
      ['a reset', 'reset'],
    ])('returns 503 for %s', async (_, answer) => {
      reply = answer
      const client = createClient({
        url: `redis://127.0.0.1:${port}`,
        RESP: 2,
        disableClientInfo: true,
        socket: { reconnectStrategy: 50 },
      })
      client.on('error', () => {})
      await client.connect()
      const router = createObserver({ client: client, deploymentId: 'd', ...QUICK }, DEADLINE)
      expect((await get(router, '/contexts')).status).toBe(503)
      client.destroy()
      for (const socket of sockets) socket.destroy()
      sockets = []
    })
  })
})
