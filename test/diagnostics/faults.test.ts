import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AdminAuth } from '../../src/http/auth.js'
import { Refusal } from '../../src/refusal.js'
import { createFakeInspectors } from '../../src/testing/fake-inspectors.js'
import {
  type Call,
  createSubject,
  createWatched,
  expectProblem,
  get,
  KEY,
  ORIGIN,
  PREFIX,
  ROWS,
  SECRET,
} from './subject.js'
import { connection, context, createWorld, message, NOW, node } from './world.js'

const ACTION = {
  name: 'open',
  description: null,
  parameters_schema: null,
  observed_connections: 1,
  observed_users: 1,
  observed_client_types: [],
}

const never = () => new Promise<never>(() => {})

describe('the deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('includes authentication', async () => {
    const auth: AdminAuth = {
      authenticate: () => new Promise((resolve) => setTimeout(resolve, 900, { name: 'slow' })),
    }
    const { router } = createWatched({ auth, deadlineMs: 1_000 }, never)
    let status = 0
    void get(router, '/connections').then((answer) => {
      status = answer.status
    })
    await vi.advanceTimersByTimeAsync(995)
    expect(status).toBe(0)
    await vi.advanceTimersByTimeAsync(10)
    expect(status).toBe(504)
  })

  it('leaves no timer behind', async () => {
    await get(createSubject(), '/connections')
    await get(createSubject(), '/nope')
    await get(createSubject(), '/users')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends a walk over pages that an inspector goes on answering afterwards', async () => {
    const { router, calls } = createWatched(
      { deadlineMs: 100 },
      () =>
        new Promise((resolve) =>
          setTimeout(resolve, 60, { items: [], next_cursor: String(calls.length), has_more: true }),
        ),
    )
    const answer = get(router, '/workers/available?user_id=alice')
    await vi.advanceTimersByTimeAsync(150)
    expectProblem(await answer, 504, 'inspector_timeout')
    await vi.advanceTimersByTimeAsync(10_000)
    expect(calls).toHaveLength(2)
  })

  it.each(['/users', '/users/alice/summary'])('%s answers 200 with what it has and names what hung', async (path) => {
    const { router } = createWatched({ deadlineMs: 100 }, ({ name, proceed }) =>
      name.startsWith('contextRegistry') ? never() : proceed(),
    )
    const answer = get(router, path)
    await vi.advanceTimersByTimeAsync(150)
    const { status, body } = await answer
    const user = body.items?.[0] ?? body
    expect(status).toBe(200)
    expect(body.completeness).toMatchObject({ complete: false, truncated_sources: ['context_registry'] })
    expect(body.completeness.examined.context_registry).toBe(0)
    expect([user.observed_connections, user.observed_contexts]).toEqual([4, null])
  })

  it('one hung route holds up no other', async () => {
    const { router } = createWatched({ deadlineMs: 100 }, ({ name, proceed }) =>
      name.startsWith('delivery') ? never() : proceed(),
    )
    const hung = get(router, '/delivery/summary')
    expect((await get(router, '/connections')).status).toBe(200)
    await vi.advanceTimersByTimeAsync(150)
    expectProblem(await hung, 504, 'inspector_timeout')
  })

  it('an inspector that throws once it is stopped has timed out, whatever it throws', async () => {
    for (const error of [new Error(SECRET), new Refusal('unavailable'), new Refusal('invalid_cursor'), undefined]) {
      const { router } = createWatched({ deadlineMs: 100 }, ({ args }) => {
        const { signal } = args.at(-1) as { signal: AbortSignal }
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(error)))
      })
      const answer = get(router, '/connections')
      await vi.advanceTimersByTimeAsync(150)
      expectProblem(await answer, 504, 'inspector_timeout')
    }
  })
})

it('a client that leaves aborts the signal, and the router still settles', async () => {
  const controller = new AbortController()
  const signals: AbortSignal[] = []
  const { router } = createWatched({}, ({ args }) => {
    signals.push((args.at(-1) as { signal: AbortSignal }).signal)
    controller.abort(new Error(SECRET))
    return never()
  })
  const answer = await get(router, '/connections', { signal: controller.signal })
  expect(answer.text).not.toContain(SECRET)
  expect(signals.map((signal) => signal.aborted)).toEqual([true])
})

it('a client that has left before it asks is answered without an unhandled rejection', async () => {
  const request = new Request(`${ORIGIN}${PREFIX}/users`, {
    headers: { 'x-admin-key': KEY },
    signal: AbortSignal.abort(),
  })
  expect((await createSubject()(request)).status).toBeGreaterThanOrEqual(200)
})

it('a late rejection of a hung inspector is heard by nobody', async () => {
  let fail = (_: Error) => {}
  const { router } = createWatched(
    { deadlineMs: 10 },
    () =>
      new Promise((_, reject) => {
        fail = reject
      }),
  )
  expectProblem(await get(router, '/connections'), 504, 'inspector_timeout')
  fail(new Error(SECRET))
  await new Promise((resolve) => setImmediate(resolve))
})

describe('what an inspector hands over', () => {
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
    ['a flag that is no boolean', '/connections', () => ({ items: [], next_cursor: null, has_more: 'no' })],
    ['a value outside its enum', '/contexts', ofFirst({ status: 'ACTIVE' })],
    ['a time that is no instant', '/contexts', ofFirst({ updated_at: 'now' })],
    ['a number below zero', '/rpc/pending', ofFirst({ age_ms: -1 })],
    ['a cyclic payload', '/history/messages?stream=users/alice/log', ofFirst({ payload: cyclic() })],
    ['a BigInt in a payload', '/history/messages?stream=users/alice/log', ofFirst({ payload: { n: 1n } })],
    ['a getter that throws in a payload', '/history/messages?stream=users/alice/log', ofFirst({ payload: throwing() })],
    ['a payload nested without end', '/history/messages?stream=users/alice/log', ofFirst({ payload: nested(100_000) })],
    ['metadata nested without end', '/connections', ofFirst({ metadata: { nested: nested(100_000) } })],
    ['a body without end', '/connections', ofFirst({ metadata: { text: 'x'.repeat(17_000_000) } })],
    ['a status that is a window', '/browser-windows/count', ofFirst({ type: 'tab' })],
  ])('%s is a fixed 500', async (_what, path, answer) => {
    const result = await get(createWatched({}, answer).router, path)
    expectProblem(result, 500, 'internal')
    expect(result.text).not.toContain(SECRET)
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
    status.attempts.last_outcome = `failed: ${SECRET}`
    status.recovery.reason = `${SECRET} `
    status.terminal = { state: 'failed', at: status.admission.at, reason: `{"payload":"${SECRET}"}` }
    const flood = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`name_${i}`, 1]))
    node.counters = { recovery: { [`${SECRET} x`]: 3 }, outcome: flood, acknowledgement: {}, other: {} }
    const router = createSubject({ inspectors: createFakeInspectors(world) })
    const { body, text } = await get(router, '/delivery/status?user_id=alice&client_id=desk&command_id=cmd-1')
    expect([body.attempts.last_outcome, body.recovery.reason, body.terminal.reason]).toEqual([
      'other',
      'other',
      'other',
    ])
    const nodes = await get(router, '/delivery/nodes')
    const { recovery, outcome } = nodes.body.items[0].counters
    expect(recovery).toEqual({ other: 3 })
    expect([Object.keys(outcome).length, outcome.other]).toEqual([32, 69])
    expect(text + nodes.text).not.toContain(SECRET)
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

describe('the hooks', () => {
  it('hear of each authenticated request once', async () => {
    const records: unknown[] = []
    let time = NOW
    const router = createSubject({ onAccess: (record) => records.push(record), now: () => time++ })
    await get(router, '/connections?user_id=alice&limit=2', { headers: { 'x-trace': SECRET } })
    await get(router, '/contexts/ctx-1', { method: 'HEAD' })
    await get(router, '/users')
    await get(router, '/history/messages?stream=users%2Falice%2Flog&limit=1')
    await get(router, '/nope')
    await get(router, '/contexts?status=nope')
    await get(router, '/contexts', { method: 'DELETE' })
    await get(router, '/contexts/none')
    await get(router, '/contexts', { headers: { 'x-admin-key': 'wrong' } })
    const record = (route: string | null, status: number, rest: object = {}) => ({
      principal: 'admin',
      route,
      status,
      duration_ms: expect.any(Number),
      item_count: null,
      complete: null,
      filters: {},
      ...rest,
    })
    expect(records).toEqual([
      record('/connections', 200, { item_count: 2, filters: { user_id: 'alice' } }),
      record('/contexts/{context_id}', 200),
      record('/users', 200, { item_count: 4, complete: true }),
      record('/history/messages', 200, { item_count: 1, complete: false, filters: { stream: 'users/alice/log' } }),
      record(null, 404),
      record('/contexts', 422),
      record('/contexts', 405),
      record('/contexts/{context_id}', 404),
    ])
    expect(JSON.stringify(records)).not.toContain(SECRET)
  })

  const bad: [what: string, hook: () => void][] = [
    [
      'throws',
      () => {
        throw new Error(SECRET)
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error(SECRET)
      },
    ],
    [
      'throws nothing',
      () => {
        throw undefined
      },
    ],
    ['never settles', () => void never()],
  ]
  it.each(bad)('change no answer when one %s', async (_what, hook) => {
    const router = createSubject({ onAccess: hook, onError: hook })
    const failing = createWatched({ onAccess: hook, onError: hook }, () => Promise.reject(new Error(SECRET))).router
    expect((await get(router, '/connections')).text).toBe((await get(createSubject(), '/connections')).text)
    expectProblem(await get(failing, '/connections'), 500, 'internal')
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('hear what was kept from the client, and where', async () => {
    const errors: unknown[] = []
    const { router } = createWatched(
      { onError: (error, place) => errors.push([(error as Error).message, place]) },
      ({ name, proceed }) => {
        if (name.startsWith('contextRegistry')) throw new Error(SECRET)
        return proceed()
      },
    )
    await get(router, '/contexts')
    await get(router, '/users')
    expect(errors).toEqual([
      [SECRET, { route: '/contexts' }],
      [SECRET, { route: '/users', source: 'context_registry' }],
    ])
  })

  it('hear of an aggregate whose every source failed once per source', async () => {
    const errors: unknown[] = []
    const { router } = createWatched(
      { onError: (_, place) => errors.push(place), inspectors: createFakeInspectors({ contexts: [context()] }) },
      () => Promise.reject(new Refusal('unavailable')),
    )
    expectProblem(await get(router, '/users'), 503, 'inspector_unavailable')
    expect(errors).toEqual([{ route: '/users', source: 'context_registry' }])
  })
})

it.each(ROWS.filter(({ path }) => path.startsWith('/workers')))('$path counts no junk as nothing', async ({ url }) => {
  const { router } = createWatched({}, () => ({ items: [{}], next_cursor: null, has_more: false }))
  expectProblem(await get(router, url), 500, 'internal')
})

it.each([
  undefined,
  null,
  {},
  { url: 'nonsense' },
])('what is no request is answered, not thrown back: %j', async (given) => {
  expect((await createSubject()(given as Request)).status).toBeGreaterThanOrEqual(404)
})

it('the clock of a host that runs backwards shows no negative duration', async () => {
  const durations: number[] = []
  let time = NOW
  await get(
    createSubject({ now: () => (time -= 1_000), onAccess: ({ duration_ms }) => durations.push(duration_ms) }),
    '/capabilities',
  )
  expect(durations).toEqual([0])
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
