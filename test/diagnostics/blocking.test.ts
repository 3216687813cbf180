/** Inspectors that do not let the event loop turn: neither the deadline nor a caller that leaves may escape notice. */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { sliceClock } from '../../src/internal/async/turns.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { type Call, createSubject, createWatched, expectProblem, get, KEY, PREFIX } from './subject.js'
import { connection } from './world.js'

/** A page of a list that never ends. */
const onePage = (token: number) => ({
  items: [connection({ connection_id: `c${token}` })],
  next_cursor: String(token),
  has_more: true,
})

describe('an inspector that blocks', () => {
  let at = 0
  /** Advances the clock without running timers. */
  const block = (ms: number) => {
    at += ms
  }
  beforeEach(() => {
    vi.spyOn(performance, 'now').mockImplementation(() => at)
    return () => vi.restoreAllMocks()
  })

  it.each<[how: string, proceed: (call: Call) => unknown]>([
    ['at once', (call) => call.proceed()],
    ['by a promise', async (call) => call.proceed()],
  ])('beyond the deadline and then answers %s is 504', async (_, proceed) => {
    const { router } = createWatched({ deadlineMs: 100 }, (call) => {
      block(150)
      return proceed(call)
    })
    expectProblem(await get(router, '/connections/conn-1'), 504, 'inspector_timeout')
  })

  it('page by page leaves an aggregate with what it has', async () => {
    const { router, calls } = createWatched({ deadlineMs: 1_000 }, ({ name }) => {
      if (name !== 'registry.listConnections') return undefined
      block(600)
      return onePage(calls.length)
    })
    const { status, body } = await get(router, '/connections/count')
    expect([status, body.total, body.completeness.complete]).toEqual([200, 2, false])
  })

  it('before the deadline is answered normally', async () => {
    const { router } = createWatched({ deadlineMs: 100 }, (call) => {
      block(99)
      return call.proceed()
    })
    expect((await get(router, '/connections/conn-1')).status).toBe(200)
  })

  it('takes no time from what the router says of itself', async () => {
    const authenticate = () => {
      queueMicrotask(() => block(150))
      return { name: 'admin' }
    }
    const { router } = createWatched({ deadlineMs: 100, auth: { authenticate } })
    expect((await get(router, '/openapi.json')).status).toBe(200)
  })
})

it('notices a client that disconnects during a walk over a synchronous source', async () => {
  const caller = new AbortController()
  let asked = 0
  const { router } = createWatched({}, ({ name }) => {
    if (name !== 'registry.listConnections') return undefined
    // What others have to do meanwhile has its turn.
    if (++asked === 1) setTimeout(() => caller.abort(), 0)
    const until = performance.now() + 4
    while (performance.now() < until);
    return onePage(asked)
  })
  const headers = { 'x-admin-key': KEY }
  const url = `http://localhost${PREFIX}/connections/count`
  await router(new Request(url, { headers, signal: caller.signal }))
  expect(asked).toBeLessThan(100)
})

describe('an aggregate over live objects', () => {
  const USERS = 200

  /** A router over users with one connection each, and a clock that advances by `stepMs` whenever it is read. */
  async function createLive(deadlineMs = 60_000) {
    const facilities = createMemoryFacilities()
    for (let i = 0; i < USERS; i++) {
      const client = { user_id: `user-${i}`, client_id: 'c', client_type: 'web' } as const
      await facilities.connections.connect({ ...client, instance_id: 'i' })
      await facilities.contexts.report({ ...client, context_id: `c-${i}`, status: 'active' })
    }
    const router = createSubject({ ...memoryComposition(facilities), deadlineMs, onError: null })
    let at = performance.now()
    let stepMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => at)
    vi.spyOn(sliceClock, 'now').mockImplementation(() => {
      at += stepMs
      return at
    })
    return {
      /** Answers, and counts the turns of the event loop until then. */
      async ask(clockStepMs: number) {
        stepMs = clockStepMs
        let turns = 0
        let isOver = false
        const count = () => {
          if (isOver) return
          turns++
          setTimeout(count, 0)
        }
        setTimeout(count, 0)
        const answer = await get(router, `/users?limit=${USERS}`)
        isOver = true
        stepMs = 0
        return { ...answer, turns }
      },
      close: () => facilities.close(),
    }
  }
  beforeEach(() => () => void vi.restoreAllMocks())

  it('lets the event loop turn after each slice, and answers the same', async () => {
    const live = await createLive()
    const { body, turns } = await live.ask(0)
    expect(turns).toBeLessThanOrEqual(2)
    const sliced = await live.ask(1)
    expect(sliced.body).toEqual(body)
    // Two sources and the view look at each user, and read the clock each time: ten reads are a slice.
    expect(sliced.turns).toBeGreaterThanOrEqual(USERS / 10)
    await live.close()
  })

  it('lets it turn for several at once as often as for one', async () => {
    const live = await createLive()
    const all = await Promise.all(Array.from({ length: 4 }, () => live.ask(1)))
    expect(Math.max(...all.map(({ turns }) => turns))).toBeGreaterThanOrEqual((4 * USERS) / 10)
    await live.close()
  })

  it('ends at its deadline between two slices', async () => {
    const live = await createLive(100)
    const { status, body } = await live.ask(1)
    expect(status).toBe(200)
    expect(body.completeness.complete).toBe(false)
    expect(body.completeness.truncated_sources).toEqual(expect.arrayContaining(['registry', 'context_registry']))
    await live.close()
  })
})
