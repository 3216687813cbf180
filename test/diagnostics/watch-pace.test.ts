/** How often watched views are read: one reader for every spelling, and a share of the reader time for each principal. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sliceClock } from '../../src/async/turns.js'
import { createPace } from '../../src/diagnostics/watch/reader.js'
import { createWatches } from '../../src/diagnostics/watch/watches.js'
import type { Chunks } from '../../src/http/respond.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createWatched, expectProblem, get } from './subject.js'
import { open, target } from './watcher.js'
import { connection, NOW } from './world.js'

const SPELLINGS = [
  '/connections?status=connected&user_id=alice',
  '/connections?user_id=alice&status=connected',
  '/connections?user_id=%61lice&%73tatus=connected',
  '/connections?status=connected&limit=100&user_id=alice',
]

beforeEach(() => {
  // A busy machine must not make a reading wait for a turn of the real event loop.
  vi.spyOn(sliceClock, 'now').mockReturnValue(0)
  vi.useFakeTimers()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

describe('watches of one view', () => {
  it('share one reader however the view is spelled, and are each sent their own spelling', async () => {
    const world = { connections: [connection({ user_id: 'alice' })] }
    const { router, calls } = createWatched({ inspectors: createFakeInspectors(world) })
    const watchers = await Promise.all(SPELLINGS.map((spelling) => open(router, [spelling])))
    const names = async () => (await Promise.all(watchers.map(({ take }) => take()))).map(([one]) => one?.data.view)
    expect(await names()).toEqual(SPELLINGS)
    world.connections.push(connection({ connection_id: 'conn-2', user_id: 'alice' }))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await names()).toEqual(SPELLINGS)
    expect(calls.filter(({ name }) => name === 'registry.listConnections')).toHaveLength(2)
    for (const { leave } of watchers) leave()
  })

  it('do not name it twice, however it is spelled', async () => {
    const { router, calls } = createWatched()
    expectProblem(await get(router, target(...SPELLINGS.slice(0, 2))), 422, 'invalid_query')
    expect(calls).toEqual([])
  })
})

/** Watches whose readings take the time that a test says, by a clock of its own. */
function createPaced(costOf: (name: string) => number) {
  let spent = 0
  const readings = new Map<string, number>()
  const watches = createWatches<{ path: string }, { name: string }>({
    routes: [{ path: '/users' }],
    givenOf: (_route, search) => ({ filters: { q: search } }),
    steady: () => performance.now() + spent,
    open: async ({ name }) => ({
      scope: '',
      compared: undefined,
      version: () => null,
      now: () => NOW,
      async read() {
        spent += costOf(name)
        readings.set(name, (readings.get(name) ?? 0) + 1)
        return { encoded: { text: '', members: [{ name: 'items', value: [] }] } as never, isWhole: true }
      },
    }),
  })
  const open = new Set<Chunks>()
  return {
    readings,
    leave: () => Promise.all(Array.from(open, (body) => body.return?.())),
    async begin(name: string, views: string[]): Promise<Chunks> {
      const search = views.map((view) => `view=${encodeURIComponent(view)}`).join('&')
      const request = new Request('http://localhost/')
      const principal = { name }
      const found = await watches.viewsIn(search)
      const { body } = await watches.begin(found, { principal, request }, async () => principal)
      open.add(body as Chunks)
      return body as Chunks
    },
  }
}

describe('a principal whose watches cost more than its share', () => {
  it('spends no more than the share, and its frames say how long to wait', async () => {
    const paced = createPaced((name) => (name.startsWith('/users?greedy') ? 10 : 1))
    const bodies = []
    for (let watch = 0; watch < 32; watch++)
      bodies.push(
        await paced.begin(
          'greedy',
          Array.from({ length: 8 }, (_, i) => `/users?greedy-${watch}-${i}`),
        ),
      )
    await paced.begin('modest', ['/users?modest'])
    await bodies[0]?.next()
    paced.readings.clear()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(paced.readings.get('/users?modest')).toBeGreaterThanOrEqual(59)
    paced.readings.delete('/users?modest')
    const readings = [...paced.readings.values()].reduce((sum, count) => sum + count, 0)
    // A quarter of the minute, and what chance adds; and no view is left out.
    expect(readings * 10).toBeLessThan(60_000 * 0.3)
    expect(readings * 10).toBeGreaterThan(60_000 * 0.15)
    expect(paced.readings.size).toBe(256)
    const { value } = (await bodies[0]?.next()) as { value: Uint8Array }
    const [sync] = new TextDecoder().decode(value).split('\n\n')
    expect(sync).toMatch(/^event: sync\ndata: /)
    expect(JSON.parse(sync?.split('data: ')[1] ?? '').refresh_ms).toBeGreaterThan(9_000)
    await paced.leave()
  })

  it('is read each second again once others of its watches have ended', async () => {
    const paced = createPaced(() => 200)
    const others = await paced.begin(
      'ann',
      Array.from({ length: 7 }, (_, i) => `/users?${i}`),
    )
    await paced.begin('ann', ['/users?last'])
    await others.return?.()
    await vi.advanceTimersByTimeAsync(15_000)
    paced.readings.clear()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(paced.readings).toEqual(new Map([['/users?last', 10]]))
    await paced.leave()
  })
})

describe('a pace', () => {
  const views = (name: string, costs: number[]) =>
    costs.map((costMs) => ({ costMs, principals: new Map(name.split(' ').map((one) => [one, 1])) }))

  it.each([
    ['what fits', { a: [100, 100], b: [250] }, { a: [1, 1], b: [1] }],
    ['cheap views before expensive ones', { a: [10, 20, 440] }, { a: [1, 1, 2] }],
    [
      'equal parts to principals that want more than all may have',
      { a: [250], b: [250], c: [250] },
      { a: [1.5], b: [1.5], c: [1.5] },
    ],
    ['what others leave', { a: [50], b: [450], c: [450] }, { a: [1], b: [2], c: [2] }],
    ['no more than the share of a principal, though others want nothing', { a: [500, 500] }, { a: [4, 4] }],
    ['a view of several in equal parts', { 'a b': [400] }, { 'a b': [1] }],
  ] as [string, Record<string, number[]>, Record<string, number[]>][])('grants %s', (_what, costs, intervals) => {
    const pace = createPace(() => 0)
    const all = Object.entries(costs).map(([name, own]) => [name, views(name, own)] as const)
    for (const [, own] of all) for (const view of own) pace.add(view)
    const found = all.map(([name, own]) => [
      name,
      own.map((view) => Number((pace.intervalOf(view) / 1_000).toFixed(3))),
    ])
    expect(Object.fromEntries(found)).toEqual(intervals)
  })

  it('counts time that several readings have in common once', () => {
    let now = 0
    const pace = createPace(() => now)
    const first = pace.measure()
    now += 10
    const second = pace.measure()
    now += 20
    expect(first()).toBe(20)
    now += 5
    expect(second()).toBe(15)
  })
})
