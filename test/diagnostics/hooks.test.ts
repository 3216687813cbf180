/** What the hooks of a host receive for a request, and that they change no response. */
import { describe, expect, it, vi } from 'vitest'
import type { InspectionContext } from '../../src/internal/contract/page.js'
import type { AccessRecord } from '../../src/internal/diagnostics/hooks.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, createWatched, expectProblem, get, KEY, never, ORIGIN, PREFIX, SECRET } from './subject.js'
import { context, NOW } from './world.js'

describe('the hooks', () => {
  it('receive each request once, with null for an unauthenticated caller', async () => {
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
    await get(router, '/delivery/status?user_id=alice&client_id=desk&command_id=none')
    await get(router, '/contexts?user_id=alice', { headers: { 'x-admin-key': SECRET } })
    const record = (route: string | null, status: number, rest: object = {}) => ({
      at: expect.stringMatching(/^2\d{3}-\d\d-\d\dT[\d:.]{12}Z$/),
      principal: 'admin',
      method: 'GET',
      route,
      params: {},
      status,
      duration_ms: expect.any(Number),
      item_count: null,
      complete: null,
      filters: {},
      remote_address: null,
      request_id: null,
      suppressed: 0,
      ...rest,
    })
    expect(records).toEqual([
      record('/connections', 200, { item_count: 2, filters: { user_id: 'alice' } }),
      record('/contexts/{context_id}', 200, { method: 'HEAD', params: { context_id: 'ctx-1' } }),
      record('/users', 200, { item_count: 4, complete: true }),
      record('/history/messages', 200, { item_count: 1, complete: false, filters: { stream: 'users/alice/log' } }),
      record(null, 404),
      record('/contexts', 422),
      record('/contexts', 405, { method: 'DELETE' }),
      record('/contexts/{context_id}', 404, { params: { context_id: 'none' } }),
      record('/delivery/status', 404, { filters: { user_id: 'alice', client_id: 'desk', command_id: 'none' } }),
      record('/contexts', 403, { principal: null }),
    ])
    expect(JSON.stringify(records)).not.toContain(SECRET)
  })

  it('receive the filters even when the request fails', async () => {
    const filters: unknown[] = []
    const onAccess = (record: { filters: unknown }) => filters.push(record.filters)
    const { router } = createWatched({ onAccess }, () => Promise.reject(new Error(SECRET)))
    await get(router, '/connections?user_id=alice&limit=2')
    expect(filters).toEqual([{ user_id: 'alice' }])
  })

  it('receive at most a hundred unauthenticated requests a second, and how many more there were', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      vi.setSystemTime(NOW)
      const records: AccessRecord[] = []
      const router = createSubject({ onAccess: (record) => records.push(record) })
      const flood = async (count: number) => {
        for (let i = 0; i < count; i++) await get(router, '/contexts', { headers: { 'x-admin-key': SECRET } })
        return records.splice(0).map(({ principal, suppressed }) => [principal, suppressed])
      }
      const hundred = Array(100).fill([null, 0])
      expect(await flood(130)).toEqual(hundred)
      await get(router, '/capabilities')
      expect(await flood(5)).toEqual([['admin', 30]])
      vi.advanceTimersByTime(1_000)
      expect(await flood(101)).toEqual([[null, 5], ...hundred.slice(1)])
      vi.advanceTimersByTime(1_000)
      expect(await flood(1)).toEqual([[null, 1]])
    } finally {
      vi.useRealTimers()
    }
  })

  it('ask for no request id when nothing receives access records', async () => {
    const requestId = vi.fn(() => 'r1')
    await get(createSubject({ requestId }), '/contexts')
    expect(requestId).not.toHaveBeenCalled()
    await get(createSubject({ requestId, onAccess: () => {} }), '/contexts')
    expect(requestId).toHaveBeenCalledOnce()
  })

  it('receive at most a hundred errors a second of unauthenticated requests', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      const errors: unknown[] = []
      const throwing = () => {
        throw new Error(SECRET)
      }
      const onError = (error: unknown) => errors.push(error)
      const options = { onAccess: () => {}, onError, requestId: throwing }
      const flood = async (router: ReturnType<typeof createSubject>) => {
        for (let i = 0; i < 130; i++) await get(router, '/contexts', { headers: { 'x-admin-key': 'none' } })
        return errors.splice(0).length
      }
      const failing = createSubject({ ...options, auth: { authenticate: throwing } })
      expect(await flood(failing)).toBe(100)
      vi.advanceTimersByTime(1_000)
      expect(await flood(failing)).toBe(100)
      const refusing = createSubject(options)
      expect(await flood(refusing)).toBe(100)
      for (let i = 0; i < 130; i++) await get(refusing, '/contexts')
      expect(errors).toHaveLength(130)
    } finally {
      vi.useRealTimers()
    }
  })

  it('hear where a request came from, and what the host calls it', async () => {
    const heard: unknown[] = []
    const errors: unknown[] = []
    const router = createSubject({
      onAccess: ({ remote_address, request_id }) => heard.push([remote_address, request_id]),
      onError: (error) => errors.push(error),
      requestId(request) {
        const id = request.headers.get('x-request-id')
        if (id === 'throw') throw new Error(SECRET)
        if (id === 'async') return Promise.reject(new Error('async')) as never
        return id === 'number' ? (7 as never) : id
      },
    })
    const ask = (info: unknown, id?: string) => {
      const headers = { 'x-admin-key': KEY, ...(id === undefined ? {} : { 'x-request-id': id }) }
      return router.reply(new Request(`${ORIGIN}${PREFIX}/capabilities`, { headers }), info)
    }
    await ask({ remoteAddress: '192.0.2.1' }, 'r-1')
    await ask(undefined)
    await ask(null, 'a\u0085b')
    await ask({ remoteAddress: 7 }, 'x'.repeat(257))
    await ask({ remoteAddress: undefined }, 'number')
    await ask('a text', 'throw')
    // Without the guard its rejection would be unhandled and fail the test run.
    await ask(null, 'async')
    expect(heard).toEqual([['192.0.2.1', 'r-1'], ...Array(6).fill([null, null])])
    expect(errors).toEqual([new Error(SECRET), new Error('async')])
    expect(() => createSubject({ requestId: 'x' as never })).toThrow(TypeError)
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

  it.each([
    '/contexts',
    '/users',
  ])('hear nothing of inspectors that the client of %s stopped by leaving', async (path) => {
    const errors: unknown[] = []
    const left = new AbortController()
    const { router } = createWatched({ onError: (error) => errors.push(error) }, ({ args }) => {
      const { signal } = args.at(-1) as InspectionContext
      left.abort()
      return Promise.reject(signal.reason)
    })
    await get(router, path, { signal: left.signal })
    expect(errors).toEqual([])
  })

  it('hear nothing of what an inspector refuses of a question', async () => {
    const errors: unknown[] = []
    const { router } = createWatched({ onError: (error) => errors.push(error) }, () =>
      Promise.reject(new Refusal('invalid_identity')),
    )
    expectProblem(
      await get(router, '/delivery/status?user_id=a&client_id=b&command_id=c'),
      400,
      'invalid_delivery_identity',
    )
    expect(errors).toEqual([])
  })

  it('receive one error per source when every source of an aggregate failed', async () => {
    const errors: unknown[] = []
    const { router } = createWatched(
      { onError: (_, place) => errors.push(place), inspectors: createFakeInspectors({ contexts: [context()] }) },
      () => Promise.reject(new Refusal('unavailable')),
    )
    expectProblem(await get(router, '/users'), 503, 'inspector_unavailable')
    expect(errors).toEqual([{ route: '/users', source: 'context_registry' }])
  })
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
