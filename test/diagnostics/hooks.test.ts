/** What the hooks of a host are told of a request, and that they change no answer. */
import { describe, expect, it } from 'vitest'
import type { Ask } from '../../src/contract/page.js'
import { Refusal } from '../../src/refusal.js'
import { createFakeInspectors } from '../../src/testing/fake-inspectors.js'
import { createSubject, createWatched, expectProblem, get, never, SECRET } from './subject.js'
import { context, NOW } from './world.js'

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

  it.each([
    '/contexts',
    '/users',
  ])('hear nothing of inspectors that the client of %s stopped by leaving', async (path) => {
    const errors: unknown[] = []
    const left = new AbortController()
    const { router } = createWatched({ onError: (error) => errors.push(error) }, ({ args }) => {
      const { signal } = args.at(-1) as Ask
      left.abort()
      return Promise.reject(signal.reason)
    })
    await get(router, path, { signal: left.signal })
    expect(errors).toEqual([])
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

it('the clock of a host that runs backwards shows no negative duration', async () => {
  const durations: number[] = []
  let time = NOW
  await get(
    createSubject({ now: () => (time -= 1_000), onAccess: ({ duration_ms }) => durations.push(duration_ms) }),
    '/capabilities',
  )
  expect(durations).toEqual([0])
})
