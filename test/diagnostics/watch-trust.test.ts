/** When a watch must not continue as before: after access was revoked, a failed read, or a partial answer. */
import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sliceClock } from '../../src/async/turns.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'
import { createPartial, PARTIAL } from './partial.js'
import { createSubject, createWatched, expectProblem, get, type RouterOptions } from './subject.js'
import { open, target } from './watcher.js'
import { connection } from './world.js'

/** A list of connections that the test changes, watched by a caller whose access the test revokes. */
function createShut(options: RouterOptions = {}) {
  const connections = [connection()]
  const state = { isKnown: true, connections }
  const auth = { authenticate: async () => (state.isKnown ? { name: 'ann' } : null) }
  const inspectors = createFakeInspectors({ connections })
  return { state, ...createWatched({ inspectors, auth: auth as never, ...options }) }
}

beforeEach(() => {
  // A busy machine must not make a reading wait for a turn of the real event loop.
  vi.spyOn(sliceClock, 'now').mockReturnValue(0)
  vi.useFakeTimers()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})
const tick = (ms = 1_000) => vi.advanceTimersByTimeAsync(ms)

describe('a watching caller', () => {
  it('is asked for again as who that is now, not as who it was', async () => {
    let users = ['alice', 'bob']
    const auth = { authenticate: async () => ({ name: 'support', users }) }
    const authorize = ({ principal }: { principal: { name: string } }) => ({
      user_ids: (principal as { users: string[] } & typeof principal).users,
    })
    const { take } = await open(createSubject({ auth, authorize }), ['/connections'])
    await take()
    users = ['bob']
    await tick(61_000)
    expect((await take()).at(-1)).toEqual({ event: 'end', data: { reason: 'scope_changed', retry: 0 } })
  })

  it('is disconnected when the same request now authenticates another principal', async () => {
    let name = 'ann'
    const { take } = await open(createSubject({ auth: { authenticate: async () => ({ name }) } }), ['/connections'])
    await take()
    name = 'bob'
    await tick(61_000)
    expect((await take()).at(-1)).toEqual({ event: 'end', data: { reason: 'forbidden', retry: null } })
  })

  it('is sent nothing but the end once that is known, neither what waited nor what came after', async () => {
    const { state, router } = createShut()
    const { take } = await open(router, ['/connections'])
    await take()
    state.connections.push(connection({ connection_id: 'while it waited' }))
    await tick(2_000)
    state.isKnown = false
    await tick(61_000)
    state.connections.push(connection({ connection_id: 'after the end' }))
    await tick(2_000)
    expect((await take()).map(({ event }) => event)).toEqual(['end'])
    expect(await take()).toEqual([])
  })

  it('holds neither a reader nor a place then, though it takes nothing any more', async () => {
    const { state, router, calls } = createShut()
    const watches = await Promise.all(Array.from({ length: 32 }, () => open(router, ['/connections'])))
    state.isKnown = false
    await tick(61_000)
    calls.length = 0
    await tick(60_000)
    expect(calls).toEqual([])
    state.isKnown = true
    const { response, leave } = await open(router, ['/connections'])
    expect(response.status).toBe(200)
    for (const one of [...watches, { leave }]) one.leave()
  })

  it('has nothing left on its request by each time that it was asked for', async () => {
    const slowly = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return { name: 'ann' }
    }
    const opening = open(createSubject({ auth: { authenticate: slowly } }), ['/connections'])
    await tick()
    const { request, leave } = await opening
    const held = () => getEventListeners(request.signal, 'abort').length
    const before = held()
    await tick(10 * 60_000)
    expect(held()).toBe(before)
    leave()
  })

  it('leaves no timer when authorization fails', async () => {
    useFakeTimers()
    const authorize = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      throw new Error('no word')
    }
    const answer = get(createSubject({ authorize }), target('/connections'))
    await tick(10)
    expectProblem(await answer, 403, 'forbidden')
    expect(ourTimers()).toEqual([])
  })
})

describe('a view', () => {
  it('whose last read failed is no snapshot for a new watch', async () => {
    const world = { connections: [connection()] }
    let isFailing = false
    const { router } = createWatched({ inspectors: createFakeInspectors(world) }, ({ proceed }) => {
      if (isFailing) throw new Error('down')
      return proceed()
    })
    const first = await open(router, ['/connections'])
    await first.take()
    isFailing = true
    await tick(60_000)
    expectProblem(await get(router, target('/connections')), 500, 'internal')
    isFailing = false
    const { take, leave } = await open(router, ['/connections'])
    expect((await take())[0]?.event).toBe('snapshot')
    for (const one of [first, { leave }]) one.leave()
  })

  it.each(
    PARTIAL,
  )('is read again where %s, though no source says that it has changed', async (_, path, source, cut) => {
    const { router, restore, calls } = createPartial(source, cut)
    const { take, leave } = await open(router, [path])
    await take()
    restore()
    await tick(2_000)
    expect(await take()).toMatchObject([{ event: 'delta' }])
    calls.length = 0
    await tick(5_000)
    expect(calls.filter(({ name }) => !name.endsWith('.version'))).toEqual([])
    leave()
  })
})
