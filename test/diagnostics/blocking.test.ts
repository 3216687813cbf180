/** Inspectors that do not let the event loop turn: neither the deadline nor a caller that leaves may escape notice. */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { type Call, createWatched, expectProblem, get, KEY, PREFIX } from './subject.js'
import { connection } from './world.js'

/** A page of a list that never ends. */
const onePage = (token: number) => ({
  items: [connection({ connection_id: `c${token}` })],
  next_cursor: String(token),
  has_more: true,
})

describe('an inspector that blocks', () => {
  let at = 0
  /** Time passes, and no timer hears of it. */
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
    const { router, calls } = createWatched({ deadlineMs: 100 }, ({ name }) => {
      if (name !== 'registry.listConnections') return undefined
      block(60)
      return onePage(calls.length)
    })
    const { status, body } = await get(router, '/connections/count')
    expect([status, body.total, body.completeness.complete]).toEqual([200, 2, false])
  })

  it('before the deadline is none the worse for it', async () => {
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

it('hears of a caller that leaves while a source that answers at once is walked', async () => {
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
