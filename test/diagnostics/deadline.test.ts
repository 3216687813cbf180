/** The deadline of a request: what it covers, what it ends, and what it leaves behind. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AdminAuth } from '../../src/internal/http/auth.js'
import { Refusal } from '../../src/internal/refusal.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'
import { createSubject, createWatched, expectProblem, get, never, SECRET } from './subject.js'

const FAKE: Parameters<typeof vi.useFakeTimers>[0] = { toFake: ['setTimeout', 'clearTimeout', 'performance'] }

describe('the deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers(FAKE)
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
    useFakeTimers(FAKE)
    await get(createSubject(), '/connections')
    await get(createSubject(), '/nope')
    await get(createSubject(), '/users')
    expect(ourTimers()).toEqual([])
  })

  it('ends a walk over pages that an inspector would continue afterwards', async () => {
    const { router, calls } = createWatched(
      { deadlineMs: 100 },
      () =>
        new Promise((resolve) =>
          setTimeout(resolve, 60, { items: [], next_cursor: String(calls.length), has_more: true }),
        ),
    )
    const answer = get(router, '/workers/available?user_id=alice')
    // The key is compared in another thread, whose time is not this one's.
    while (calls.length === 0) await new Promise(setImmediate)
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

it('a late rejection of a hung inspector is not unhandled', async () => {
  let fail = (_: Error) => {}
  const { router } = createWatched(
    { deadlineMs: 200 },
    () =>
      new Promise((_, reject) => {
        fail = reject
      }),
  )
  expectProblem(await get(router, '/connections'), 504, 'inspector_timeout')
  fail(new Error(SECRET))
  await new Promise((resolve) => setImmediate(resolve))
})
