/** How the router handles valid and invalid results of inspectors. */
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { CASES, type Call, createSubject, createWatched, expectProblem, get, SECRET } from './subject.js'
import { connection, context, createWorld, message, node } from './world.js'

const ACTION = {
  name: 'open',
  description: null,
  parameters_schema: null,
  observed_connections: 1,
  observed_users: 1,
  observed_client_types: [],
}

it('an inspector that writes into its filter changes neither its next page nor what the access hook hears', async () => {
  const heard: unknown[] = []
  const { router } = createWatched({ onAccess: ({ filters }) => heard.push(filters) }, (call) => {
    const page = call.proceed()
    const filter = call.args[0] as Record<string, unknown>
    filter.client_id = 'elsewhere'
    delete filter.user_id
    return page
  })
  const first = await get(router, '/connections?user_id=alice&limit=1')
  const next = await get(router, `/connections?user_id=alice&limit=1&cursor=${first.body.next_cursor}`)
  expect([first.status, next.status]).toEqual([200, 200])
  expect(next.body.items).not.toEqual(first.body.items)
  expect(heard).toEqual([{ user_id: 'alice' }, { user_id: 'alice' }])
})

describe('the result of an inspector', () => {
  const ofFirst = (change: object) => (call: Call) => {
    const page = call.proceed() as { items: object[] }
    return { ...page, items: page.items.map((item, i) => (i === 0 ? { ...item, ...change } : item)) }
  }
  it.each<[what: string, path: string, answer: (call: Call) => unknown]>([
    [
      'a million items',
      '/connections',
      () => ({ items: new Array(1_000_000).fill(connection()), next_cursor: null, has_more: false }),
    ],
    [
      'a million messages',
      '/history/messages?stream=s',
      () => ({ items: new Array(1_000_000).fill(message()), truncated: false }),
    ],
    [
      'items that are no list',
      '/connections',
      () => ({ items: { length: 1, 0: connection() }, next_cursor: null, has_more: false }),
    ],
    ['more, without a token', '/connections', () => ({ items: [], next_cursor: null, has_more: true })],
    ['more, with a token that is no text', '/connections', () => ({ items: [], next_cursor: 5, has_more: true })],
    ['a flag that is no boolean', '/connections', () => ({ items: [], next_cursor: null, has_more: 'no' })],
  ])('%s is a fixed 500', async (_what, path, answer) => {
    const result = await get(createWatched({}, answer).router, path)
    expectProblem(result, 500, 'internal')
    expect(result.text).not.toContain(SECRET)
  })

  it('may be a page of a class, which keeps its members where a spread does not look', async () => {
    class OwnPage {
      readonly #page: Record<string, unknown>
      constructor(page: object) {
        this.#page = { ...page }
      }
      get items() {
        return this.#page.items
      }
      get next_cursor() {
        return this.#page.next_cursor
      }
      get has_more() {
        return this.#page.has_more
      }
    }
    const isPage = (answer: unknown) => answer !== null && typeof answer === 'object' && 'has_more' in answer
    const { router } = createWatched({}, ({ proceed }) => {
      const answer = proceed()
      return isPage(answer) ? new OwnPage(answer as object) : answer
    })
    const plain = createSubject()
    const lists = CASES.filter(({ path }) => !path.startsWith('/history/messages')).map(({ url }) => url)
    expect(lists.length).toBeGreaterThan(20)
    for (const path of lists) {
      const [own, other] = [await get(router, path), await get(plain, path)]
      expect([path, own.status, own.body.items]).toEqual([path, other.status, other.body.items])
    }
    const first = await get(router, '/connections?limit=1')
    const next = await get(router, `/connections?limit=1&cursor=${first.body.next_cursor}`)
    expect([next.status, next.body.items.length]).toEqual([200, 1])
  })

  it.each<[what: string, page: object]>([
    ['whose items are a Set', { items: new Set([connection()]), next_cursor: null, has_more: false }],
    ['that does not say whether there is more', { items: [connection()], next_cursor: null }],
    ['with null for whether there is more', { items: [connection()], next_cursor: null, has_more: null }],
  ])('of one source is no page %s, and the other sources answer', async (_what, page) => {
    const inspectors = createFakeInspectors(createWorld())
    const registry = { listConnections: () => page as never, getConnection: () => null }
    const router = createSubject({ inspectors: { registry, contextRegistry: inspectors.contextRegistry } })
    for (const path of ['/users', '/users/alice/summary'])
      expect((await get(router, path)).body.completeness, path).toMatchObject({
        complete: false,
        truncated_sources: ['registry'],
      })
    for (const path of ['/connections', '/connections/count', '/actions'])
      expectProblem(await get(router, path), 500, 'internal')
  })

  it('makes the one source of a list the one that was cut short', async () => {
    const page = { items: [ACTION, { ...ACTION, observed_users: -1 }], next_cursor: null, has_more: false }
    const { router } = createWatched({}, ({ name, proceed }) => (name === 'registry.listActions' ? page : proceed()))
    const { body } = await get(router, '/actions')
    expect([body.items.length, body.omitted]).toEqual([1, 1])
    expect(body.completeness).toMatchObject({ complete: false, truncated_sources: ['registry'] })
  })

  it('is reported to the host if it has more pages and no valid cursor', async () => {
    for (const next_cursor of [null, undefined, 5]) {
      const heard: unknown[] = []
      const onError = (error: unknown) => heard.push(String(error))
      await get(createWatched({ onError }, () => ({ items: [], next_cursor, has_more: true })).router, '/connections')
      expect(heard).toEqual([expect.stringContaining('next_cursor: must be a string while has_more is true')])
    }
  })

  it.each<[what: string, path: string, answer: (call: Call) => unknown]>([
    ['a value outside its enum', '/contexts', ofFirst({ status: 'ACTIVE' })],
    ['a time that is no instant', '/contexts', ofFirst({ updated_at: 'now' })],
    ['a number below zero', '/rpc/pending', ofFirst({ age_ms: -1 })],
    ['a cyclic payload', '/history/messages?stream=users/alice/log', ofFirst({ payload: cyclic() })],
    ['a BigInt in a payload', '/history/messages?stream=users/alice/log', ofFirst({ payload: { n: 1n } })],
    ['a getter that throws in a payload', '/history/messages?stream=users/alice/log', ofFirst({ payload: throwing() })],
    ['a payload nested without end', '/history/messages?stream=users/alice/log', ofFirst({ payload: nested(100_000) })],
    ['metadata nested without end', '/connections', ofFirst({ metadata: { nested: nested(100_000) } })],
  ])('of which a record has %s leaves it out, and says so', async (_what, path, answer) => {
    const whole = await get(createWatched().router, path)
    const { status, body, text } = await get(createWatched({}, answer).router, path)
    expect([status, body.items, body.omitted]).toEqual([200, whole.body.items.slice(1), 1])
    expect(text).not.toContain(SECRET)
  })

  it.each([
    '/connections?limit=2',
    '/contexts?limit=2',
    '/delivery/nodes?limit=2',
    '/actions?limit=2',
    '/history/messages?stream=s&limit=2',
  ])('%s with one item more than its limit is a fixed 500', async (path) => {
    const records = {
      connections: connection(),
      contexts: context(),
      delivery: node(),
      actions: ACTION,
      history: message(),
    }
    const record = records[path.split(/[/?]/)[1] as keyof typeof records]
    const page = (count: number) => () => ({
      items: Array.from({ length: count }, () => record),
      next_cursor: null,
      has_more: false,
      truncated: false,
    })
    expect((await get(createWatched({}, page(2)).router, path)).status).toBe(200)
    expectProblem(await get(createWatched({}, page(3)).router, path), 500, 'internal')
  })

  it('a lone surrogate leaves as an escape', async () => {
    const { status, text } = await get(
      createWatched({}, ofFirst({ metadata: { text: '\ud800' } })).router,
      '/connections',
    )
    expect([status, text.includes('\\ud800')]).toEqual([200, true])
  })

  it.each([
    undefined,
    () => SECRET,
    Symbol('x'),
  ])('a payload that JSON cannot carry is null, and no missing field', async (payload) => {
    const { status, body } = await get(
      createWatched({}, ofFirst({ payload })).router,
      '/history/messages?stream=users/alice/log',
    )
    expect(status).toBe(200)
    expect(body.items[0]).toHaveProperty('payload', null)
  })

  it('a name that is no low-cardinality name leaves as other', async () => {
    const world = createWorld()
    const [status] = world.delivery.statuses ?? []
    const [node] = world.delivery.nodes ?? []
    if (!status || !node) throw new Error('the world has both')
    status.attempts = { ...status.attempts, last_outcome: `failed: ${SECRET}` as never }
    status.recovery = { ...status.recovery, reason: `${SECRET} ` as never }
    status.terminal = { state: 'failed', reason: `{"payload":"${SECRET}"}` }
    const flood = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`name_${i}`, 1]))
    const full = Number.MAX_SAFE_INTEGER
    const counted = { 'a name': full, 'another name': full }
    node.counters = { recovery: { [`${SECRET} x`]: 3 }, outcome: flood, acknowledgement: counted, other: {} }
    const router = createSubject({ inspectors: createFakeInspectors(world) })
    const { body, text } = await get(router, '/delivery/status?user_id=alice&client_id=desk&command_id=cmd-1')
    expect([body.attempts.last_outcome, body.recovery.reason, body.terminal.reason]).toEqual([
      'other',
      'other',
      'other',
    ])
    const nodes = await get(router, '/delivery/nodes')
    const { recovery, outcome, acknowledgement } = nodes.body.items[0].counters
    expect(acknowledgement).toEqual({ other: full })
    expect(recovery).toEqual({ other: 3 })
    expect([Object.keys(outcome).length, outcome.other]).toEqual([32, 69])
    expect(text + nodes.text).not.toContain(SECRET)
  })

  it('leaves the limits of later requests unchanged, whatever the inspector writes to its context', async () => {
    const examined: unknown[] = []
    const { router } = createWatched({}, ({ args, proceed }) => {
      const { limits } = args.at(-1) as { limits: { examined: number } }
      examined.push(limits.examined)
      Reflect.set(limits, 'examined', 1_000_000_000)
      return proceed()
    })
    await get(router, '/connections')
    await get(router, '/connections')
    expect(examined).toEqual([10_000, 10_000])
  })

  it('an invalid identity is 400 on the status of a command and 422 elsewhere', async () => {
    const { router } = createWatched({}, () => Promise.reject(new Refusal('invalid_identity', SECRET)))
    expectProblem(
      await get(router, '/delivery/status?user_id=a&client_id=b&command_id=c'),
      400,
      'invalid_delivery_identity',
    )
    expectProblem(await get(router, '/contexts/c'), 422, 'invalid_path')
    expectProblem(await get(router, '/contexts?user_id=a'), 422, 'invalid_query')
  })

  it('a failing context registry fails the windows, and is never a silent snapshot', async () => {
    const { router } = createWatched({}, ({ name, proceed }) =>
      name.startsWith('contextRegistry') ? Promise.reject(new Refusal('unavailable')) : proceed(),
    )
    expectProblem(await get(router, '/browser-windows'), 503, 'inspector_unavailable')
    expectProblem(await get(router, '/browser-windows/win-1'), 503, 'inspector_unavailable')
  })
})

describe('a record of another id than requested', () => {
  const RECORDS = CASES.filter(({ path }) => /_id\}(\/summary|\/history)?$/.test(path) || path === '/delivery/status')
  const IDS = ['connection_id', 'context_id', 'window_id', 'correlation_id', 'session_id', 'site_id', 'command_id']

  it.each(
    RECORDS.filter(({ path }) => !/^\/(workers|rpc\/instances|users)/.test(path)),
  )('is 500 at $path, is not shown, and onError receives the field', async ({ url, path }) => {
    const told: string[] = []
    const ids = [...IDS, ...(path.startsWith('/deduplicator') ? ['user_id'] : [])]
    const renamed = (record: object) =>
      Object.fromEntries(Object.entries(record).map(([name, value]) => [name, ids.includes(name) ? SECRET : value]))
    const onError = (error: unknown) => void told.push(String((error as Error).message))
    const { router } = createWatched({ onError }, ({ proceed }) => {
      const answer = proceed() as { items?: object[] } | null
      return answer?.items
        ? { ...answer, items: answer.items.map(renamed) }
        : answer && !Array.isArray(answer)
          ? renamed(answer)
          : answer
    })
    const result = await get(router, url)
    expectProblem(result, 500, 'internal')
    expect(result.text).not.toContain(SECRET)
    expect(told).toEqual([expect.stringMatching(/^the inspector returned a record with another \w+ than requested$/)])
  })

  it('leaves the deduplicator out of a summary of a user', async () => {
    const { router } = createWatched({}, ({ name, proceed }) =>
      name === 'deduplicator.userSummary' ? { ...(proceed() as object), user_id: 'bob' } : proceed(),
    )
    const { body } = await get(router, '/users/alice/summary')
    expect(body).toMatchObject({ deduplicator: null, completeness: { truncated_sources: ['deduplicator'] } })
  })

  it('is no tenant of the scope that was requested', async () => {
    const { router } = createWatched({}, ({ proceed }) => {
      const answer = proceed() as object
      return 'reserved_commands' in Object(answer) ? { ...answer, scope_id: SECRET } : answer
    })
    const result = await get(router, '/delivery/tenants?scope_id=alice')
    expect(result.text).not.toContain(SECRET)
  })
})

it.each([
  ['/workers?user_id=alice', { idle: [], assigned: [], idle_count: 0, assigned_count: 0, other_count: 0 }],
  ['/workers/count?user_id=alice', { idle_count: 0, assigned_count: 0, other_count: 0 }],
  ['/workers/available?user_id=alice', { items: [] }],
  ['/workers/tasks/t?user_id=alice', { items: [] }],
])('%s omits a worker of another user that an inspector returns', async (path, expected) => {
  const items = ['idle', 'active'].map((status, i) =>
    context({ user_id: 'bob', context_id: `${i}`, task_id: i ? 't' : null, status: status as 'idle' }),
  )
  const contexts = { listContexts: () => ({ items, next_cursor: null, has_more: false }), getContext: () => null }
  const { status, body } = await get(createSubject({ inspectors: { contextRegistry: contexts } }), path)
  expect({ status, body }).toMatchObject({ status: 200, body: expected })
})

it.each(CASES.filter(({ path }) => path.startsWith('/workers')))('$path counts no junk as nothing', async ({ url }) => {
  const { router } = createWatched({}, () => ({ items: [{}], next_cursor: null, has_more: false }))
  const { body } = await get(router, url)
  expect(body.omitted ?? body.completeness?.truncated_sources).toEqual(body.completeness ? ['context_registry'] : 1)
})

function cyclic(): unknown {
  const value: Record<string, unknown> = {}
  value.self = value
  return value
}

function throwing(): unknown {
  return {
    get text(): string {
      throw new Error(SECRET)
    },
  }
}

function nested(depth: number): unknown {
  let value: unknown = SECRET
  for (let i = 0; i < depth; i++) value = { value }
  return value
}
