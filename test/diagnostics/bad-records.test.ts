/** One record that its schema refuses: left out wherever it would be read, said on the page, and told field by field. */
import { describe, expect, it } from 'vitest'
import type { ErrorPlace } from '../../src/internal/diagnostics/hooks.js'
import type { FakeWorld } from '../../src/testing/kits.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, expectProblem, get } from './subject.js'
import { browserWindow, connection, context, createWorld, message, node } from './world.js'

const BAD_TYPE = 'not-a-client-type'

/** A router over `world`, and what its `onError` hears. */
function createHeard(world: FakeWorld, over: object = {}) {
  const heard: [message: string, place: ErrorPlace][] = []
  const router = createSubject({
    inspectors: { ...createFakeInspectors(world), ...over },
    onError: (error, place) => heard.push([String(error), place]),
  })
  return { router, heard }
}

const desktop = () => connection({ connection_id: 'c-bad', user_id: 'bob', client_type: BAD_TYPE as never })

/** Three connections, of which the second is bad. */
const connections = () => [
  connection({ connection_id: 'c-1' }),
  desktop(),
  connection({ connection_id: 'c-3', user_id: 'carol' }),
]

const TYPE_FAULT = { path: 'client_type', expected: 'one of browser, console, mobile, web' }

describe('a connection whose client type there is not', () => {
  it('is left out of its list, and told with its place, its id and its field', async () => {
    const { router, heard } = createHeard({ connections: connections() })
    const { status, body } = await get(router, '/connections?order=oldest')
    expect([status, body.items.map((item: { connection_id: string }) => item.connection_id), body.omitted]).toEqual([
      200,
      ['c-1', 'c-3'],
      1,
    ])
    const [[told, place] = []] = heard
    expect(heard).toHaveLength(1)
    expect(place).toEqual({ route: '/connections', source: 'registry', index: 1, id: 'c-bad', fields: [TYPE_FAULT] })
    expect(told).toBe(
      'BadRecord: item 1 (c-bad) was skipped: client_type: expected one of browser, console, mobile, web',
    )
    expect(JSON.stringify(heard)).not.toContain(BAD_TYPE)
  })

  it('leaves the cursor of its page alone', async () => {
    const { router } = createHeard({ connections: connections() })
    const first = await get(router, '/connections?limit=2')
    expect([first.body.items.length, first.body.omitted, first.body.has_more]).toEqual([1, 1, true])
    const next = await get(router, `/connections?limit=2&cursor=${first.body.next_cursor}`)
    expect([next.body.items.length, next.body.has_more, 'omitted' in next.body]).toEqual([1, false, false])
  })

  it('makes no count complete', async () => {
    const { router, heard } = createHeard({ connections: connections() })
    const { body } = await get(router, '/connections/count')
    expect([body.total, body.by_client_type.browser, body.completeness]).toMatchObject([
      2,
      2,
      { complete: false, truncated_sources: ['registry'], examined: { registry: 3 } },
    ])
    expect(heard).toEqual([
      [expect.any(String), expect.objectContaining({ source: 'registry', id: 'c-bad', index: 1 })],
    ])
  })

  it.each(['/users', '/users/carol/summary', '/actions'])('is no loss of others in %s', async (path) => {
    const { router, heard } = createHeard({ connections: connections(), contexts: [context()] })
    const { status, body } = await get(router, path)
    expect(status).toBe(200)
    // The summary of one user asks for that user's connections alone.
    const isWhole = path.endsWith('summary')
    expect([body.completeness.complete, heard.length]).toEqual(isWhole ? [true, 0] : [false, 1])
    if (!isWhole) expect(body.completeness.truncated_sources).toEqual(['registry'])
    for (const [, place] of heard) expect(place).toMatchObject({ route: path, source: 'registry', id: 'c-bad' })
    if (path === '/users')
      expect(body.items).toMatchObject([
        { user_id: 'alice', observed_connections: 1 },
        { user_id: 'carol', observed_connections: 1 },
      ])
  })

  it('is a 500 alone', async () => {
    const { router, heard } = createHeard({ connections: connections() })
    expectProblem(await get(router, '/connections/c-bad'), 500, 'internal')
    expect(heard[0]?.[0]).toContain('client_type: expected one of browser')
    expect(JSON.stringify(heard)).not.toContain(BAD_TYPE)
    expect((await get(router, '/connections/c-1')).status).toBe(200)
  })
})

describe('every list', () => {
  const wrong = 'wrong' as never
  it.each<[path: string, world: FakeWorld, source: string]>([
    ['/contexts?order=oldest', { contexts: [context({ status: wrong }), context()] }, 'context_registry'],
    [
      '/browser-windows?order=oldest',
      { browserWindows: [browserWindow({ type: wrong }), browserWindow()] },
      'browser_window_registry',
    ],
    [
      '/browser-windows?order=oldest',
      { browserWindows: [browserWindow({ type: wrong }), browserWindow()], contexts: [] },
      'browser_window_registry',
    ],
    ['/workers/available?user_id=alice', { contexts: [context({ updated_at: wrong }), context()] }, 'context_registry'],
    [
      '/workers/tasks/t?user_id=alice',
      { contexts: [context({ task_id: 't', updated_at: wrong }), context({ task_id: 't' })] },
      'context_registry',
    ],
    ['/rpc/pending', { calls: [{ age_ms: -1 }, {}] }, 'rpc'],
    ['/history/streams?order=oldest', { streams: [{ message_count: 0.5 }, {}] }, 'history'],
    ['/history/messages?stream=users/alice/log', { messages: [message({ kind: wrong }), message()] }, 'history'],
    ['/delivery/nodes', { delivery: { nodes: [node({ stale: wrong }), node()] } }, 'delivery'],
    ['/delivery/tenants', { delivery: { tenants: [{ reserved_commands: -1 }, {}] } }, 'delivery'],
    ['/actions', { connections: [], actions: [{ observed_users: 0.5 }, {}] }, 'registry'],
    [
      '/connections/c/history',
      { connectionEvents: [{ connection_id: 'c', at: wrong }, { connection_id: 'c' }] },
      'registry',
    ],
  ])('%s leaves one out', async (path, world, source) => {
    const { router, heard } = createHeard(world)
    const { status, body } = await get(router, path)
    expect([status, body.items?.length, body.omitted]).toEqual([200, 1, 1])
    expect(heard.map(([, place]) => [place.source, place.index, place.fields?.length])).toEqual([[source, 0, 1]])
    if (body.completeness) expect(body.completeness.complete).toBe(false)
  })

  it('and every aggregate of workers is not complete', async () => {
    const { router } = createHeard({ contexts: [context({ updated_at: wrong }), context()] })
    for (const path of ['/workers', '/workers/count'])
      expect((await get(router, `${path}?user_id=alice`)).body).toMatchObject({
        idle_count: 1,
        completeness: { complete: false, truncated_sources: ['context_registry'] },
      })
  })
})

it('names no value, and no field that could be one', async () => {
  const metadata = { [BAD_TYPE]: 1n }
  const { router, heard } = createHeard({ connections: [connection({ metadata: metadata as never }), connection()] })
  expect((await get(router, '/connections')).body.omitted).toBe(1)
  expect(heard[0]?.[1]).toMatchObject({ fields: [{ path: '', expected: 'a value that JSON can carry' }] })
  const counters = { recovery: { [BAD_TYPE]: -1 }, outcome: {}, acknowledgement: {}, other: {} }
  const counted = createHeard({ delivery: { nodes: [node({ counters })] } })
  expect((await get(counted.router, '/delivery/nodes')).body.omitted).toBe(1)
  expect(counted.heard[0]?.[1].fields).toEqual([{ path: 'counters.recovery.…', expected: 'number, at least 0' }])
  expect(JSON.stringify([heard, counted.heard])).not.toContain(BAD_TYPE)
})

it('reports a hundred records one by one, and the rest by their number', async () => {
  const world = { connections: Array.from({ length: 250 }, (_, i) => ({ ...desktop(), connection_id: `c-${i}` })) }
  const { router, heard } = createHeard(world)
  const { body } = await get(router, '/connections?limit=500')
  expect([body.items, body.omitted, heard.length]).toEqual([[], 250, 101])
  expect(heard.at(-1)).toEqual(['BadRecord: 150 more records were left out of the answer', { route: '/connections' }])
})

it('says of raw history that it is not whole', async () => {
  const access: unknown[] = []
  const router = createSubject({
    inspectors: createFakeInspectors({ messages: [message({ sequence: -1 }), message()] }),
    onAccess: ({ complete, item_count }) => access.push([complete, item_count]),
  })
  const { body } = await get(router, '/history/messages?stream=users/alice/log')
  expect([body.items.length, body.count, body.omitted]).toEqual([1, 1, 1])
  expect(access).toEqual([[false, 1]])
})

it('leaves only the window of a context that cannot be read uncounted', async () => {
  const world = createWorld()
  world.browserWindows = ['win-1', 'win-2'].map((window_id) => browserWindow({ window_id }))
  world.contexts = [context({ window_id: 'win-1', updated_at: 'now' }), context({ window_id: 'win-2' })]
  const { router, heard } = createHeard(world)
  const { body } = await get(router, '/browser-windows?order=oldest')
  expect(body.items.map((item: { worker_count: number | null }) => item.worker_count)).toEqual([null, 1])
  expect(heard.map(([, { source }]) => source)).toEqual(['context_registry'])
})

it('tells under which source an inspector passed something over', async () => {
  const { router, heard } = createHeard(createWorld(), {
    rpc: {
      listPending(_filter: object, _page: object, ask: { onError?(error: unknown): void }) {
        ask.onError?.(new Error('a row that cannot be read'))
        return { items: [], next_cursor: null, has_more: false }
      },
      getPending: () => null,
    },
  })
  for (const path of ['/rpc/pending', '/users', '/users/alice/summary']) {
    heard.length = 0
    expect((await get(router, path)).status).toBe(200)
    expect(heard).toEqual([['Error: a row that cannot be read', expect.objectContaining({ source: 'rpc' })]])
  }
})
