/**
 * Invalid rows, and rows under a wrong key: omitted from their list, counted there, and reported with id and fields.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ErrorPlace } from '../../src/internal/diagnostics/hooks.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createClock } from '../contract/clock.js'
import { closedAfterTest } from './closing.js'
import { createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

const LISTS: [path: string, source: string, table: string][] = [
  ['/connections', 'registry', 'connections'],
  ['/contexts', 'context_registry', 'contexts'],
  ['/workers/available?user_id=ann', 'context_registry', 'contexts'],
  ['/browser-windows', 'browser_window_registry', 'windows'],
  ['/rpc/pending', 'rpc', 'calls'],
  ['/history/streams', 'history', 'streams'],
  ['/history/messages?stream=users/ann/log', 'history', 'messages'],
]

describeRedis('an invalid row in each table', () => {
  let server: Server
  let host: Connected
  let facilities: ReturnType<typeof createRedisFacilities>[]
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
    const at = { client: host.client, deploymentId: 'bad' }
    facilities = ['node-1', 'node-2'].map((nodeId) => createRedisFacilities({ ...at, nodeId }))
    for (const [i, { connections, contexts, browserWindows, rpc, history }] of facilities.entries()) {
      const who = { user_id: 'ann', client_id: `c-${i}`, instance_id: `i-${i}` }
      await connections.connect({ ...who, client_type: 'web', actions: ['open'] })
      const context = { client_type: 'web', status: 'idle', ownership: 'worker', window_id: `w-${i}` } as const
      await contexts.report({ ...who, context_id: `ctx-${i}`, ...context })
      await browserWindows.report({ user_id: 'ann', client_id: `c-${i}`, window_id: `w-${i}` })
      await rpc.open({ ...who, action: 'open' })
      for (const stream of ['users/ann/log', `users/ann/s-${i}`])
        await history.append({ ...who, message_id: `m-${i}`, stream, kind: 'event', payload: null })
    }
    for (const table of new Set(LISTS.map(([, , table]) => table))) await spoil(table)
  })
  afterAll(async () => {
    for (const one of facilities) await one.close()
    await host.close()
    await server.stop()
  })

  /** The line that readers take the fields from: the second where the first has the indexes only. */
  const spoiled = (row: string) =>
    /"context_id"|"window_id"/.test(row.split('\n')[1] ?? '')
      ? row.replace(/\n(.*?):"[^"]*"/, '\n$1:7')
      : row.replace(/:"[^"]*"/, ':7')

  /** Replaces the first string of a row of `table` with a number. */
  async function spoil(table: string) {
    const of = table === 'messages' ? 'messages:row:users%2Fann%2Flog*' : `*:row:*`
    const keys = (await server.cli('KEYS', `relayscope:{bad:0}:${of}`)).split('\n')
    const key = keys
      .filter((one) => one.includes(`:${table}:row:`))
      .sort()
      .at(table === 'windows' ? -1 : 0)
    if (key === undefined) throw new Error(`no row of ${table} among ${keys}`)
    await server.cli('SET', key, spoiled(await server.cli('GET', key)))
  }

  function createHeard() {
    const heard: ErrorPlace[] = []
    const router = createDiagnosticsRouter({
      ...redisComposition({ client: host.client, deploymentId: 'bad' }),
      auth: noopAuth(),
      onError: (_error, place) => heard.push(place),
    })
    return { router, heard }
  }

  it.each(LISTS)('%s omits it', async (path, source) => {
    const { router, heard } = createHeard()
    const { status, body } = await get(router, path)
    expect([status, body.omitted, body.items.length]).toEqual([200, 1, path.endsWith('streams') ? 2 : 1])
    const [place] = heard.filter((one) => one.source === source)
    expect(place).toMatchObject({ route: path.split('?')[0], id: expect.any(String) })
    expect(place?.fields).toEqual([{ path: expect.stringMatching(/^\w+$/), expected: expect.any(String) }])
  })

  it.each([
    '/connections/count',
    '/contexts/count',
    '/browser-windows/count',
    '/workers?user_id=ann',
    '/users',
  ])('%s is not complete', async (path) => {
    const { router, heard } = createHeard()
    const { status, body } = await get(router, path)
    expect([status, body.completeness.complete]).toEqual([200, false])
    for (const place of heard) expect(place).toMatchObject({ route: path.split('?')[0], source: expect.any(String) })
    if (path === '/users')
      expect(body.items).toMatchObject([{ user_id: 'ann', observed_connections: 1, observed_contexts: 1 }])
  })

  it('returns no counts for a window with an unreadable context', async () => {
    const { items } = (await get(createHeard().router, '/browser-windows')).body
    expect(items.map((item: { worker_count: number | null }) => item.worker_count)).toEqual([null])
  })
})

describeRedis('a reader of rows under wrong keys', () => {
  let server: Server
  let host: Connected
  const clock = createClock()
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await host.close()
    await server.stop()
  })

  function deployment(deploymentId: string) {
    const where = { client: host.client, deploymentId, now: clock.now }
    const reported: string[] = []
    const router = createObserver({ ...where, onError: (error) => void reported.push(String(error)) })
    const key = (...parts: string[]) => `relayscope:{${deploymentId}:0}:${parts.join(':')}`
    return { facilities: closedAfterTest(createRedisFacilities(where)), reported, router, key }
  }
  const context = (user_id: string, context_id: string) =>
    ({ user_id, context_id, client_id: 'c', client_type: 'web', status: 'idle' }) as const

  it.each([
    ['user', ['bob', 'c', 'k']],
    ['client', ['ann', 'd', 'k']],
    ['command', ['ann', 'c', 'l']],
  ])("shows no status that is of another %s's command", async (_, [user_id = '', client_id = '', command_id = '']) => {
    const { facilities, reported, router, key } = deployment(`status-${user_id}-${client_id}-${command_id}`)
    const command = { user_id: 'ann', client_id: 'c', command_id: 'k', action: 'open', deadline_ms: 600_000 }
    await facilities.dispatcher.dispatch(command)
    await facilities.dispatcher.close()
    const path = (user: string, client: string, id: string) =>
      `/delivery/status?user_id=${user}&client_id=${client}&command_id=${id}`
    expect((await get(router, path('ann', 'c', 'k'))).status).toBe(200)
    const other = key('delivery', 'command', user_id, client_id, command_id)
    expect(await server.cli('COPY', key('delivery', 'command', 'ann', 'c', 'k'), other)).toBe('1')
    expect((await get(router, path(user_id, client_id, command_id))).status).toBe(404)
    expect(reported).toEqual([`BadRow: ${other} should hold the record of a command, and holds something else`])
  })

  it('does not return a status after its retention, even if it was not swept', async () => {
    const { facilities, router } = deployment('retention')
    const command = { user_id: 'ann', client_id: 'c', command_id: 'k' }
    await facilities.dispatcher.dispatch({ ...command, action: 'open' })
    await facilities.dispatcher.cancel(command)
    await facilities.dispatcher.close()
    const path = '/delivery/status?user_id=ann&client_id=c&command_id=k'
    expect((await get(router, path)).status).toBe(200)
    clock.advance(3_601_000)
    expect((await get(router, path)).status).toBe(404)
  })

  describe('ignores a row longer than any record', () => {
    it.each([
      ['a page', '/contexts', { items: [], omitted: 1 }],
      ['counts', '/contexts/count', { total: 0, completeness: { complete: false } }],
      ['a user', '/users', { items: [{ user_id: 'ann', observed_contexts: null }], completeness: { complete: false } }],
      ['one record', '/contexts/x', { code: 'not_found' }],
    ])('in %s', async (name, path, body) => {
      const { facilities, reported, router, key } = deployment(`long-${name.replaceAll(' ', '_')}`)
      await facilities.contexts.report(context('ann', 'x'))
      const row = await server.cli('GET', key('contexts', 'row', 'x'))
      const long = row.replace('{', `{${' '.repeat(131_072)}`)
      await (host.client as unknown as { sendCommand(args: string[]): Promise<unknown> }).sendCommand([
        'SET',
        key('contexts', 'row', 'x'),
        long,
      ])
      expect((await get(router, path)).body).toMatchObject(body)
      expect(reported.join()).toMatch(/x has \d+ characters, more than the maximum of/)
    })
  })

  it('counts a record for the user in the record, whatever the index of users contains', async () => {
    const { facilities, router, key } = deployment('index')
    await facilities.contexts.report(context('ann', 'x'))
    await server.cli('ZADD', key('contexts', 'users'), '0', 'bob')
    await server.cli('ZADD', key('contexts', 'live', 'bob'), String(clock.now() + 90_000), 'x')
    await server.cli('ZADD', key('contexts', 'user_id', 'bob'), '1', 'x')
    const { items } = (await get(router, '/users')).body
    expect(items).toMatchObject([{ user_id: 'ann', observed_contexts: 1 }])
    expect((await get(router, '/users/bob/summary')).status).toBe(404)
    expect((await get(router, '/contexts?user_id=bob')).body.items).toEqual([])
  })
})
