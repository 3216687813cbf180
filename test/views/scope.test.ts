/** What inspectors that see some users only make of sources: the contract, the bounds, and what breaks its promises. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Connection, RegistryInspector } from '../../src/internal/contract/connections.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { InspectionContext, PageQuery } from '../../src/internal/contract/page.js'
import type { PendingCallFilter } from '../../src/internal/contract/rpc.js'
import { Refusal } from '../../src/internal/refusal.js'
import { scopeInspectors } from '../../src/internal/views/scope/inspectors.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createFakeInspectors, inspectorContract } from '../../src/testing/kits.js'
import { NO_PAGE } from '../../src/testing/lists.js'
import { ASK, createClock, walk } from '../contract/clock.js'
import { ANN, CYD, Ids, MARKS, tell, userOf } from '../diagnostics/scoped-world.js'
import { connection, context, createWorld, message, stream } from '../diagnostics/world.js'

const only = (...user_ids: string[]) => ({ user_ids })
const FIRST: PageQuery = { limit: 100, cursor: null }

describe('the contract of scoped inspectors', () => {
  const clock = createClock()
  const ids = new Ids()
  const facilities = createMemoryFacilities({ now: clock.now, newId: ids.next, rpc: { newId: ids.next } })
  beforeAll(() => tell(facilities, clock, ids, MARKS))
  afterAll(() => facilities.close())

  const scoped = () => scopeInspectors(memoryComposition(facilities).inspectors, only(userOf(CYD), userOf(ANN)))
  // Several users come one after the other. Totals over all users are refused, and a window has no user unless its owner
  // is given.
  const isKept = (name: string) =>
    !/^(delivery|deduplicator): |^rpc: summary|connectionChurn|countByWindow|listConnectionEvents is newest/.test(name)
  const cases = inspectorContract(scoped).filter(({ name }) => isKept(name))
  it.each(cases.map((one) => [one.name, one] as const))('%s', async (_, { run }) => void (await run()))
})

describe('scopeInspectors', () => {
  it('has nothing that it does not know', () => {
    const all = createFakeInspectors(createWorld())
    const known = scopeInspectors(all, only('alice'))
    const more = Object.entries(all).map(([name, inspector]) => [name, { ...inspector, later: () => 'of all' }])
    const later = scopeInspectors({ ...Object.fromEntries(more), later: { list: () => 'of all' } }, only('alice'))
    const methodsOf = (inspectors: Inspectors) =>
      Object.entries(inspectors).map(([name, inspector]) => [name, Object.keys(inspector ?? {})])
    expect(methodsOf(later)).toEqual(methodsOf(known))
    expect(Object.values(scopeInspectors({}, only('alice'))).filter(Boolean)).toEqual([])
  })

  it('refuses a scope with a name that it does not know', () => {
    expect(() => scopeInspectors({}, { ...only('alice'), user_id: 'bob' } as never)).toThrow(
      new TypeError('Unknown option "user_id". Did you mean "user_ids"?'),
    )
  })

  it('refuses what is of all users', async () => {
    const { deduplicator, delivery, registry, rpc } = scopeInspectors(
      createFakeInspectors(createWorld()),
      only('alice'),
    )
    for (const ctx of [
      () => rpc?.summary?.(ASK),
      () => registry?.connectionChurn?.({}, ASK),
      () => deduplicator?.summary(ASK),
      () => delivery?.summary(ASK),
      () => delivery?.deliveryChurn?.({}, ASK),
      () => delivery?.listNodes(FIRST, ASK),
      () => delivery?.listTenants(FIRST, ASK),
    ])
      expect(ctx).toThrow(new Refusal('not_narrowable'))
  })

  it('counts the sessions of sites whose owner is in sight, and asks for no others', async () => {
    const asked: unknown[] = []
    const source = createFakeInspectors(createWorld()).sessions
    if (!source) throw new Error('the world has no sessions')
    const countSessions: typeof source.countSessions = (sites) => {
      asked.push(...sites.map(({ owner }) => owner))
      return sites.map(() => 3)
    }
    const { sessions } = scopeInspectors({ sessions: { ...source, countSessions } }, only('alice'))
    const sites = ['bob', 'alice', 'carol'].map((owner) => ({ owner, site_id: 'notes' }))
    expect(await sessions?.countSessions?.(sites, ASK)).toEqual([null, 3, null])
    expect(asked).toEqual(['alice'])
  })

  it('shows only the calls of visible users, with and without those that are overdue', async () => {
    const calls = ['alice', 'bob', 'carol'].flatMap((user_id) =>
      [false, true].map((overdue) => ({ user_id, overdue, correlation_id: `${user_id} ${overdue}` })),
    )
    const { rpc } = scopeInspectors(createFakeInspectors({ calls }), only('carol', 'alice'))
    const shown = async (filter: PendingCallFilter) =>
      (await walk(async (page) => (await rpc?.listPending(filter, page, ASK)) ?? NO_PAGE, 1)).map(
        ({ correlation_id }) => correlation_id,
      )
    expect(await shown({})).toEqual(['alice false', 'alice true', 'carol false', 'carol true'])
    expect(await shown({ overdue: false, user_id: 'alice' })).toEqual(['alice false'])
    expect(await shown({ overdue: true })).toEqual(['alice true', 'carol true'])
    expect(await shown({ overdue: true, user_id: 'bob' })).toEqual([])
  })

  it.each<[what: string, scope: unknown]>([
    ['nothing', undefined],
    ['no list', { user_ids: 'alice' }],
    ['no ids', { user_ids: ['alice', 7] }],
    ['too many', { user_ids: Array.from({ length: 501 }, (_, i) => `u${i}`) }],
  ])('takes no scope that is %s', (_what, scope) => {
    expect(() => scopeInspectors({}, scope as never)).toThrow(/user_ids/)
  })
})

/** A registry of `count` connections of each user that records its calls. */
function createSource(users: number, count: number) {
  const asked: { user_id: unknown; filters: number; limit: number; scanBudget: number | undefined }[] = []
  const registry: RegistryInspector = {
    getConnection: () => null,
    listConnections(filter, { limit, cursor }, { scanBudget }) {
      asked.push({ user_id: filter.user_id, filters: Object.keys(filter).length, limit, scanBudget })
      const start = Number(cursor ?? 0)
      const known = Number(String(filter.user_id).slice(1)) < users
      const size = known ? Math.min(limit, count - start) : 0
      const items = Array.from({ length: size }, (_, i) =>
        connection({ user_id: String(filter.user_id), connection_id: `${filter.user_id}-${start + i}` }),
      )
      const next = start + items.length
      const has_more = known && next < count
      return { items, next_cursor: has_more ? String(next) : null, has_more, examined: items.length }
    },
  }
  return { asked, registry }
}

const list = (registry: RegistryInspector, user_ids: string[]) => {
  const scoped = scopeInspectors({ registry }, { user_ids }).registry as RegistryInspector
  return (page: PageQuery, filter: object = {}, ctx: InspectionContext = ASK) =>
    scoped.listConnections(filter, page, ctx)
}
const users = (count: number) => Array.from({ length: count }, (_, i) => `u${i}`)

describe('a list of several users', () => {
  it('asks for one user at a time, and for all of theirs whatever the filter is', async () => {
    const { asked, registry } = createSource(10, 7)
    const found = await walk((page) => list(registry, ['u2', 'u1', 'u3', 'missing'])(page, { client_id: 'desk' }), 3)
    expect(found.map(({ connection_id }: { connection_id: string }) => connection_id)).toEqual(
      ['u1', 'u2', 'u3'].flatMap((user) => Array.from({ length: 7 }, (_, i) => `${user}-${i}`)),
    )
    expect(asked.every(({ filters }) => filters === 1)).toBe(true)
    expect([...new Set(asked.map(({ user_id }) => user_id))]).toEqual(['missing', 'u1', 'u2', 'u3'])
    expect(await walk((page) => list(registry, ['u1'])(page, { client_id: 'other' }), 3)).toEqual([])
    expect(await walk((page) => list(registry, ['u1'])(page, { user_id: 'u2' }), 3)).toEqual([])
  })

  it('looks at no more than the bound of a request, and says how much it was', async () => {
    const { asked, registry } = createSource(500, 1_000)
    const ctx: InspectionContext = { ...ASK, limits: { examined: 250 } }
    const page = await list(registry, users(500))({ limit: 100, cursor: null }, { client_id: 'other' }, ctx)
    expect(page).toMatchObject({ items: [], has_more: true, examined: 250 })
    expect(asked.map(({ limit }) => limit)).toEqual([100, 100, 50])
    expect(asked.map(({ scanBudget }) => scanBudget)).toEqual([undefined, 150, 50])
  })

  it('makes a hundred requests at most, and continues from there', async () => {
    const { asked, registry } = createSource(0, 0)
    const first = await list(registry, users(150))(FIRST)
    expect([asked.length, first.items, first.has_more]).toEqual([100, [], true])
    const next = await list(registry, users(150))({ limit: 100, cursor: first.next_cursor })
    expect([asked.length, next.items, next.has_more]).toEqual([150, [], false])
  })

  it('continues for the same users only, and refuses foreign cursors', async () => {
    const { registry } = createSource(10, 7)
    const { next_cursor } = await list(registry, ['u1', 'u2'])({ limit: 3, cursor: null })
    const token = next_cursor as string
    expect((await list(registry, ['u2', 'u1', 'u1'])({ limit: 3, cursor: token })).items).toHaveLength(3)
    for (const [user_ids, filter, cursor] of [
      [['u1'], {}, token],
      [['u1', 'u3'], {}, token],
      [['u1', 'u2', 'u3'], {}, token],
      [[], {}, token],
      [['u1', 'u2'], { user_id: 'u2' }, token],
      [['u1', 'u2'], { user_id: 'u3' }, token],
      [['u1', 'u2'], {}, '3'],
      [['u1', 'u2'], {}, ''],
      [['u1', 'u2'], {}, token.replace('.0.', '.2.')],
      [['u1', 'u2'], {}, token.replace('.0.', '.-1.')],
      [['u1', 'u2'], {}, token.replace('.0.', '.00.')],
      [['u1', 'u2'], {}, `x${token}`],
    ] as const)
      await expect(list(registry, [...user_ids])({ limit: 3, cursor }, filter)).rejects.toThrow('invalid_cursor')
  })

  it('ends where a source goes round, and counts what was left out', async () => {
    const registry: RegistryInspector = {
      getConnection: () => null,
      listConnections: () => ({ items: [], next_cursor: 'round', has_more: true, omitted: 2 }),
    }
    expect(await list(registry, ['u1'])(FIRST)).toMatchObject({ items: [], has_more: true, omitted: 4 })
  })
})

describe('a source that breaks its promises', () => {
  const asked: string[] = []
  const careless: Inspectors = {
    registry: {
      listConnections: () => ({ items: createWorld().connections as Connection[], next_cursor: null, has_more: false }),
      getConnection: () => connection({ user_id: 'bob' }),
      listConnectionHistory: () => ({ items: [], next_cursor: null, has_more: false }),
      observeUsers: () => [{ user_id: 'alice' }, { user_id: 'bob', observed_connections: 2 }],
    },
    contextRegistry: {
      listContexts: () => ({ items: [], next_cursor: null, has_more: false }),
      getContext: () => context({ user_id: 'bob' }),
      countByWindow: (ids) => ids.map((window_id) => ({ window_id, worker_count: 1, idle_count: 1, busy_count: 0 })),
    },
    history: {
      readMessages({ stream: name }) {
        asked.push(name)
        return { items: [message(), message({ user_id: 'bob' })], truncated: false }
      },
      listStreams: () => ({
        items: [stream(), stream({ stream: 'users/bob/log' }), stream({ stream: 'users/alicelog' })],
        next_cursor: null,
        has_more: false,
      }),
    },
    deduplicator: {
      summary: () => expect.unreachable(),
      userSummary: () => ({ user_id: 'bob', entries: 1, accepted: 1, duplicates: 0, oldest_at: null }),
    },
  }
  const { registry, contextRegistry, history, deduplicator } = scopeInspectors(careless, only('alice'))

  it('shows nothing of others all the same', async () => {
    const listed = await registry?.listConnections({}, FIRST, ASK)
    expect(new Set(listed?.items.map(({ user_id }) => user_id))).toEqual(new Set(['alice']))
    expect(await registry?.getConnection('conn-1', ASK)).toBeNull()
    expect(await registry?.listConnectionHistory?.('conn-1', FIRST, ASK)).toBeNull()
    expect(await registry?.observeUsers?.(['alice', 'bob'], ASK)).toEqual([{ user_id: 'alice' }])
    expect(await registry?.observeUsers?.(['bob'], ASK)).toEqual([])
    expect(await registry?.listUserIds?.({ after: null, limit: 10 }, ASK)).toEqual(['alice'])
    expect(await contextRegistry?.getContext('ctx-1', ASK)).toBeNull()
    expect((await history?.readMessages({ stream: 'users/alice/log', limit: 9 }, ASK))?.items).toEqual([message()])
    expect((await history?.listStreams?.({}, FIRST, ASK))?.items).toEqual([stream()])
    expect(await deduplicator?.userSummary?.('alice', ASK)).toBeNull()
  })

  it('has its actions of one user told without what it has examined of all', async () => {
    const page = { items: [], next_cursor: 'a', has_more: true, omitted: 1, truncated: true }
    const filters: unknown[] = []
    const source: RegistryInspector = {
      listConnections: () => expect.unreachable(),
      getConnection: () => null,
      listActions(filter) {
        filters.push(filter)
        return { ...page, examined: 99 }
      },
    }
    const actions = (user_ids: string[], filter: object) =>
      scopeInspectors({ registry: source }, { user_ids }).registry?.listActions?.(filter, FIRST, ASK)
    expect(await actions(['alice'], { client_type: 'web' })).toEqual(page)
    expect(await actions(['alice', 'bob'], { user_id: 'bob' })).toEqual(page)
    for (const [users, filter] of [
      [['alice', 'bob'], {}],
      [['alice'], { user_id: 'bob' }],
      [[], {}],
    ] as const)
      expect(await actions([...users], filter)).toBeNull()
    expect(filters).toEqual([{ client_type: 'web', user_id: 'alice' }, { user_id: 'bob' }])
  })

  it('is not even asked for the stream of another, whatever it is called', async () => {
    const names = ['users/bob/log', 'users/alic/log', 'users/alice', 'users/alicea/log', 'users/%61lice/log', 'log', '']
    for (const name of names)
      expect(await history?.readMessages({ stream: name, limit: 9 }, ASK)).toEqual({ items: [], truncated: false })
    expect(asked.filter((name) => names.includes(name))).toEqual([])
  })

  it('counts no window without a known owner', async () => {
    const count = (windows?: { window_id: string; user_id: string }[]) =>
      contextRegistry?.countByWindow?.(['w1', 'w2'], ASK, windows)
    const of = (window_id: string, user_id: string) => ({ window_id, user_id })
    const counts = { worker_count: 1, idle_count: 1, busy_count: 0 }
    const [none, one, both] = [
      await count(),
      await count([of('w1', 'alice'), of('w2', 'bob')]),
      await count([of('w1', 'alice'), of('w2', 'alice')]),
    ]
    expect([none, none?.truncated]).toEqual([[], true])
    expect([one, one?.truncated]).toEqual([[{ window_id: 'w1', ...counts }], true])
    expect([both?.length, both?.truncated]).toEqual([2, undefined])
  })
})
