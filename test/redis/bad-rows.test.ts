/** One row of each table that is none of ours: left out of its list, counted there, and told with its id and fields. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ErrorPlace } from '../../src/diagnostics/hooks.js'
import { createDiagnosticsRouter } from '../../src/diagnostics/router.js'
import { noopAuth } from '../../src/http/auth.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { get } from './router.js'
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

describeRedis('a row of each table that is none of ours', () => {
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
      await browserWindows.report({ ...who, window_id: `w-${i}` })
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

  /** Puts a number in place of the first text of a row of `table`. */
  async function spoil(table: string) {
    const of = table === 'messages' ? 'messages:row:users%2Fann%2Flog*' : `*:row:*`
    const keys = (await server.cli('KEYS', `relayscope:{bad:0}:${of}`)).split('\n')
    const key = keys
      .filter((one) => one.includes(`:${table}:row:`))
      .sort()
      .at(table === 'windows' ? -1 : 0)
    if (key === undefined) throw new Error(`no row of ${table} among ${keys}`)
    await server.cli('SET', key, (await server.cli('GET', key)).replace(/:"[^"]*"/, ':7'))
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

  it.each(LISTS)('%s leaves it out', async (path, source) => {
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

  it('a window of a context that cannot be read has no counts', async () => {
    const { items } = (await get(createHeard().router, '/browser-windows')).body
    expect(items.map((item: { worker_count: number | null }) => item.worker_count)).toEqual([null])
  })
})
