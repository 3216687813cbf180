/** Absurd numbers in the store: each route responds, whichever number it is. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { spoil as spoilRecord } from './record.js'
import { type Answer, createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

/** Beyond a safe integer, beyond a Date, beyond the years that a timestamp can name, between two integers, negative. */
const ABSURD = ['1e308', '9007199254740992', '8640000000000001', '253402300800000', '1.5', '-9007199254740993']
const ENDLESS = ['+inf', '-inf']

const PATHS = [
  '/users',
  '/users/ann/summary',
  '/actions',
  '/connections?limit=1',
  '/connections/count',
  '/history/streams',
  '/history/messages?stream=users%2Fann%2Flog',
  '/rpc/pending',
  '/rpc/instances/i?user_id=ann&client_id=c',
  '/deduplicator/summary',
  '/deduplicator/users/ann',
  '/contexts?limit=1',
  '/contexts?status=idle',
  '/contexts/count',
  '/workers?user_id=ann',
  '/browser-windows',
  '/browser-windows/count',
  '/delivery/summary',
  '/delivery/nodes',
  '/delivery/tenants?limit=1',
  '/delivery/commands?limit=1',
  '/delivery/commands?overdue=true',
  '/delivery/status?user_id=ann&client_id=c&command_id=k1',
]

describeRedis('a store with absurd numbers', () => {
  let server: Server
  let host: Connected
  const open: { close(): Promise<unknown> }[] = []
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    for (const facilities of open) await facilities.close()
    await host.close()
    await server.stop()
  })

  // biome-ignore lint/suspicious/noExplicitAny: replies of a foreign hand, read by their command
  const send = (...args: string[]): Promise<any> => (host.client as any).sendCommand(args)

  async function live(deploymentId: string) {
    const facilities = createRedisFacilities({ client: host.client, deploymentId, nodeId: 'n', onError: null })
    const client = { user_id: 'ann', client_id: 'c' }
    for (const n of [1, 2]) {
      const instance = { ...client, client_id: n === 1 ? 'c' : 'd', instance_id: 'i' }
      await facilities.connections.connect({ ...instance, client_type: 'web', actions: ['open'] })
      const window = { ...client, window_id: `w${n}` }
      const context = { context_id: `x${n}`, client_type: 'web', status: 'idle', ownership: 'worker' } as const
      await facilities.contexts.report({ ...window, ...context })
      await facilities.browserWindows.report({ ...window, tab_count: 1 })
      await facilities.ingest({ ...instance, message_id: `m${n}`, stream: 'log', kind: 'event', payload: n })
      await facilities.rpc.open({ action: 'open', ...client, timeout_ms: 600_000 })
      const command = { ...client, command_id: `k${n}`, scope_id: `s${n}`, deadline_ms: 600_000 }
      await facilities.dispatcher.dispatch({ ...command, action: 'open' })
    }
    // From here on the store holds still, and the calls are pending.
    await facilities.dispatcher.close()
    open.push(facilities)
  }

  /** Replaces every number under `key` with `number`. */
  async function spoil(key: string, type: string, number: string) {
    if (type === 'zset')
      for (const member of await send('ZRANGE', key, '0', '-1')) await send('ZADD', key, number, member)
    if (type === 'hash') for (const field of await send('HKEYS', key)) await send('HSET', key, field, number)
    if (type === 'string') {
      const value: string = await send('GET', key)
      await send('SET', key, /^\d+$/.test(value) ? number : value.replace(/:\d+(?=[,}])/g, `:${number}`))
    }
  }

  it('returns 200 for every route, and no number below 0', async () => {
    await live('numbers')
    const wrong: string[] = []
    const keys: string[] = await send('KEYS', 'relayscope:{numbers:*')
    // However long this takes.
    for (const key of keys) await send('PERSIST', key)
    for (const key of keys.filter((name) => !name.endsWith(':shards'))) {
      const type: string = await send('TYPE', key)
      const router = createObserver({ client: host.client, deploymentId: 'numbers' })
      for (const number of type === 'zset' ? [...ABSURD, ...ENDLESS] : ABSURD) {
        await send('COPY', key, 'kept')
        await spoil(key, type, number)
        const answers = await Promise.all(
          PATHS.map(async (path) => ({ path, answer: await router(new Request(`http://h${path}`)) })),
        )
        for (const { path, answer } of answers) {
          const body = await answer.text()
          if (![200, 404].includes(answer.status) || /":-\d/.test(body))
            wrong.push(`${answer.status} ${path} with ${key} ${number}`)
        }
        await send('RENAME', 'kept', key)
      }
    }
    expect(keys.length).toBeGreaterThan(40)
    expect(wrong).toEqual([])
  })

  const observerOf = (deploymentId: string) => {
    const reported: string[] = []
    const onError = (error: unknown) => void reported.push(String(error))
    return { reported, router: createObserver({ client: host.client, deploymentId, onError }) }
  }

  it.each([
    '9007199254740992',
    '1e308',
    '+inf',
    '253402300800000',
  ])('does not know how old a claim of %s is, and reports it', async (score) => {
    const deploymentId = `claim-${score.length}`
    const { deduplicator } = createRedisFacilities({ client: host.client, deploymentId, onError: null })
    await deduplicator.claim({ user_id: 'ann', message_id: 'm' })
    const key = `relayscope:{${deploymentId}:0}:dedup:of:ann`
    await send('ZADD', key, score, 'm')
    const { reported, router } = observerOf(deploymentId)
    expect(await get(router, '/deduplicator/users/ann')).toMatchObject({
      status: 200,
      body: { user_id: 'ann', entries: 1, accepted: 1, oldest_at: null },
    })
    expect(reported).toEqual([`BadRow: ${key} holds a score that is not a timestamp in epoch ms`])
  })

  it('returns null for an invalid deadline of a reservation or a command, and reports it', async () => {
    await live('deadline')
    await spoilRecord(send, 'relayscope:{deadline:0}:delivery:command:ann:c:k1', 'deadline_at', '100000000000000000')
    const { reported, router } = observerOf('deadline')
    expect((await get(router, '/delivery/tenants')).body.items).toMatchObject([
      { scope_id: 's1', reserved_commands: 1, oldest_deadline_at: null },
      { scope_id: 's2', reserved_commands: 1, oldest_deadline_at: expect.any(String) },
    ])
    expect((await get(router, '/delivery/summary')).body).toMatchObject({
      tracked_commands: 2,
      oldest_deadline_at: expect.any(String),
    })
    expect(reported).toHaveLength(2)
  })

  it('rounds an instant down to milliseconds', async () => {
    await live('between')
    for (const key of await send('KEYS', 'relayscope:{between:0}:*:row:*')) {
      const value: string = await send('GET', key)
      await send('SET', key, value.replace(/("[a-z]+_at":\d+)(?=[,}])/g, '$1.5'))
    }
    const { reported, router } = observerOf('between')
    for (const path of ['/rpc/pending', '/connections', '/contexts', '/browser-windows', '/delivery/nodes']) {
      const { status, body } = await get(router, path)
      expect([path, status, body.items?.length > 0]).toEqual([path, 200, true])
    }
    expect(reported).toEqual([])
  })

  it('limits sums to the largest number that a record can hold', async () => {
    const facilities = createRedisFacilities({ client: host.client, deploymentId: 'sums', shards: 2, onError: null })
    for (const user_id of ['ann', 'bob', 'cid', 'dan']) {
      await facilities.deduplicator.claim({ user_id, message_id: 'm' })
    }
    for (const shard of [0, 1]) {
      const most = String(Number.MAX_SAFE_INTEGER)
      await send('HSET', `relayscope:{sums:${shard}}:dedup:counts`, 'accepted', most, 'capacity', most)
    }
    const { router } = observerOf('sums')
    expect((await get(router, '/deduplicator/summary')).status).toBe(200)
  })

  it.each([
    ['1.5', '2.5', '3'],
    ['4', '1e17', '1e308'],
    ['1', '2', '+inf'],
  ])('walks to the end of an index with the scores %s, %s and %s', async (...scores) => {
    const deploymentId = `walk-${scores[0]}`.replace('.', '_')
    const { contexts } = createRedisFacilities({ client: host.client, deploymentId, onError: null })
    for (const [n, score] of scores.entries()) {
      const owner = { user_id: 'ann', client_id: 'c', client_type: 'web' as const }
      await contexts.report({ context_id: `x${n}`, ...owner, status: 'idle' })
      await send('ZADD', `relayscope:{${deploymentId}:0}:contexts:all`, score, `x${n}`)
    }
    const { router } = observerOf(deploymentId)
    const walked = async (order: string) => {
      const seen: string[] = []
      let next: string | null = ''
      while (next !== null) {
        const query = `limit=1&order=${order}${next && `&cursor=${next}`}`
        const { status, body }: Answer = await get(router, `/contexts?${query}`)
        expect(status).toBe(200)
        seen.push(...body.items.map((context: { context_id: string }) => context.context_id))
        next = body.next_cursor
      }
      return seen
    }
    expect(await walked('oldest')).toEqual(['x0', 'x1', 'x2'])
    expect(await walked('newest')).toEqual(['x2', 'x1', 'x0'])
  })
})
