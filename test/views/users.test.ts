import { describe, expect, it } from 'vitest'
import type { Connection, RegistryInspector } from '../../src/contract/connections.js'
import { compareIds } from '../../src/contract/ids.js'
import type { Inspectors } from '../../src/contract/inspectors.js'
import type { IdPageQuery } from '../../src/contract/page.js'
import { Refusal } from '../../src/refusal.js'
import { createFakeInspectors } from '../../src/testing/fake-inspectors.js'
import { summarizeUser } from '../../src/views/user-summary.js'
import { listUsers } from '../../src/views/users.js'
import { browserWindow, call, connection, context, stream } from '../diagnostics/world.js'
import { createAsk, FIRST, listOf, many, never } from './subject.js'

/** A registry that keeps an index over its users. */
function indexed(connections: Connection[], over: Partial<RegistryInspector> = {}): RegistryInspector {
  const ids = [...new Set(connections.map((entry) => entry.user_id))].sort(compareIds)
  return {
    listConnections: (filter, page) => listOf(connections).list(filter, page),
    getConnection: () => null,
    listUserIds: ({ after, limit }: IdPageQuery) =>
      ids.filter((id) => after === null || compareIds(id, after) > 0).slice(0, limit),
    observeUsers: (asked) =>
      asked.flatMap((user_id) => {
        const own = connections.filter((entry) => entry.user_id === user_id)
        return own.length ? [{ user_id, observed_connections: own.length, observed_client_types: ['web'] }] : []
      }),
    ...over,
  }
}

const contextsOf = (...users: string[]) => users.map((user_id, i) => context({ user_id, context_id: `ctx-${i}` }))
const connectionsOf = (...users: string[]) =>
  users.map((user_id, i) => connection({ user_id, connection_id: `conn-${i}` }))
const fakes = createFakeInspectors

async function walkUsers(inspectors: Inspectors, limit: number) {
  const ids: string[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < 500; pages++) {
    const page = await listUsers(inspectors, { limit, cursor }, createAsk().ask)
    expect(page.items.length).toBeLessThanOrEqual(limit)
    ids.push(...page.items.map((user) => user.user_id))
    if (!page.has_more) return ids
    cursor = page.next_cursor
  }
  throw new Error('the walk does not end')
}

describe('/users', () => {
  const names = ['a', 'Z', '\uFFFD', '\u{1F600}', '\u{10FFFF}', '\uE000', 'é', 'z', '\u{1F600}a', '~']

  it.each([
    1, 2, 3, 100,
  ])('lists all users once in the order of UTF-8 bytes, %i at a time, from ordered and sampled sources', async (limit) => {
    const inspectors: Inspectors = {
      registry: indexed(connectionsOf(...names.filter((_, i) => i % 2 === 0), 'a', 'z')),
      ...fakes({
        contexts: contextsOf(...names.filter((_, i) => i % 3 === 0)),
        browserWindows: names.map((user_id, i) => browserWindow({ user_id, window_id: `w-${i}` })),
      }),
    }
    const byBytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(await walkUsers(inspectors, limit)).toEqual(byBytes)
  })

  it('ends when its last page is exactly full', async () => {
    for (const count of [99, 100, 101, 499, 500, 501]) {
      const registry = indexed(connectionsOf(...many(count, (i) => `user-${i}`)))
      expect(await walkUsers({ registry }, 100)).toHaveLength(count)
      expect(await walkUsers({ registry }, 500)).toHaveLength(count)
    }
  })

  it('tells 0, which a source knows, from null, which it could not say', async () => {
    const inspectors: Inspectors = {
      ...fakes({ connections: connectionsOf('alice'), contexts: [] }),
      browserWindowRegistry: {
        listBrowserWindows: () => Promise.reject(new Error('down')),
        getBrowserWindow: () => null,
      },
    }
    const { ask, reports } = createAsk()
    const { items, completeness } = await listUsers(inspectors, FIRST, ask)
    expect(items).toEqual([
      {
        user_id: 'alice',
        sources: ['registry'],
        observed_connections: 1,
        observed_client_types: ['browser'],
        observed_action_types: ['close', 'open'],
        observed_contexts: 0,
        observed_browser_windows: null,
        last_seen_at: connection().last_seen_at,
      },
    ])
    expect(completeness).toEqual({
      complete: false,
      truncated_sources: ['browser_window_registry'],
      examined: { registry: 1, context_registry: 0, browser_window_registry: 0 },
      limits: { registry: 10_000, context_registry: 10_000, browser_window_registry: 10_000 },
    })
    expect(reports).toEqual([['browser_window_registry', new Error('down')]])
    const absent = await listUsers(fakes({ connections: connectionsOf('alice') }), FIRST, createAsk().ask)
    expect(absent.items[0]).toMatchObject({
      observed_connections: 1,
      observed_contexts: null,
      observed_browser_windows: null,
    })
    expect(absent.completeness).toMatchObject({
      complete: true,
      examined: { registry: 1 },
      limits: { registry: 10_000 },
    })
  })

  it('counts only what is connected, and still knows who has gone', async () => {
    const gone = connection({ user_id: 'bob', status: 'disconnected', actions: ['wipe'], client_type: 'mobile' })
    const { items } = await listUsers(fakes({ connections: [gone] }), FIRST, createAsk().ask)
    expect(items).toMatchObject([
      { user_id: 'bob', observed_connections: 0, observed_client_types: [], observed_action_types: [] },
    ])
  })

  it('asks rpc, and history where it lists streams', async () => {
    const inspectors = fakes({
      calls: [call({ user_id: 'carol' })],
      messages: [],
      streams: [stream({ user_id: 'dora' })],
      deduplicator: { users: [] },
    })
    const { items, completeness } = await listUsers(inspectors, FIRST, createAsk().ask)
    expect(items.map((user) => [user.user_id, user.sources])).toEqual([
      ['carol', ['rpc']],
      ['dora', ['history']],
    ])
    expect(Object.keys(completeness.examined)).toEqual(['rpc', 'history'])
    const without = await listUsers(fakes({ calls: [], messages: [] }), FIRST, createAsk().ask)
    expect(Object.keys(without.completeness.examined)).toEqual(['rpc'])
  })

  it('says that a source with 10,001 entries was cut, and shows no number for whom it may not have reached', async () => {
    const { list, served } = listOf([...many(10_000, () => connection()), connection({ user_id: 'zoe' })])
    const inspectors: Inspectors = {
      registry: { listConnections: list, getConnection: () => null },
      ...fakes({ contexts: contextsOf('zoe') }),
    }
    const { items, completeness } = await listUsers(inspectors, FIRST, createAsk().ask)
    expect(items.map((user) => [user.user_id, user.observed_connections])).toEqual([
      ['alice', 10_000],
      ['zoe', null],
    ])
    expect(completeness).toMatchObject({
      complete: false,
      truncated_sources: ['registry'],
      examined: { registry: 10_000, context_registry: 1 },
    })
    expect(served).toEqual({ pages: 20, items: 10_000, largest: 500 })
  })

  it('asks at most 100 pages, and stops at a token that comes again', async () => {
    for (const [next, pages] of [
      [(n: number) => String(n), 100],
      [() => 'again', 2],
      [(n: number) => String(n % 3), 4],
    ] as const) {
      let asked = 0
      const listConnections = () => {
        asked += 1
        return { items: [], next_cursor: next(asked), has_more: true }
      }
      const { completeness } = await listUsers(
        { registry: { listConnections, getConnection: () => null } },
        FIRST,
        createAsk().ask,
      )
      expect([asked, completeness.complete, completeness.truncated_sources]).toEqual([pages, false, ['registry']])
    }
  })

  it.each<[what: string, page: unknown]>([
    ['has more, but no token', { items: [], next_cursor: null, has_more: true }],
    ['holds more than its limit', { items: many(501, () => connection()), next_cursor: null, has_more: false }],
    ['is none', undefined],
  ])('takes a source whose page %s for failed', async (_what, page) => {
    const registry = { listConnections: () => page as never, getConnection: () => null }
    await expect(listUsers({ registry }, FIRST, createAsk().ask)).rejects.toThrow(TypeError)
    const { items, completeness } = await listUsers(
      { registry, ...fakes({ contexts: contextsOf('alice') }) },
      FIRST,
      createAsk().ask,
    )
    expect([items[0]?.observed_connections, completeness.truncated_sources]).toEqual([null, ['registry']])
  })

  it('keeps what a source gave before it failed', async () => {
    const listConnections = (_: object, { cursor }: { cursor: string | null }) => {
      if (cursor) throw new Refusal('unavailable')
      return { items: [connection()], next_cursor: 'on', has_more: true }
    }
    const { items, completeness } = await listUsers(
      { registry: { listConnections, getConnection: () => null } },
      FIRST,
      createAsk().ask,
    )
    expect([items[0]?.observed_connections, completeness.complete, completeness.examined]).toEqual([
      1,
      false,
      { registry: 1 },
    ])
  })

  it.each<[what: string, over: Partial<RegistryInspector>]>([
    ['fails', { observeUsers: () => Promise.reject(new Error('down')) }],
    ['answers nothing', { observeUsers: () => 7 as never }],
    [
      'lacks its index and fails',
      { observeUsers: undefined as never, listConnections: () => Promise.reject(new Error('down')) },
    ],
  ])('keeps the users of a source that %s when it is asked for their numbers', async (_what, over) => {
    const registry = indexed(connectionsOf('alice', 'bob'), over)
    for (const others of [{}, fakes({ contexts: contextsOf('bob') })]) {
      const { items, completeness } = await listUsers({ registry, ...others }, FIRST, createAsk().ask)
      expect(items.map((user) => [user.user_id, user.sources[0], user.observed_connections])).toEqual([
        ['alice', 'registry', null],
        ['bob', 'registry', null],
      ])
      expect([completeness.complete, completeness.truncated_sources]).toEqual([false, ['registry']])
    }
  })

  it.each<[what: string, ids: unknown]>([
    ['out of order', ['b', 'a']],
    ['twice', ['a', 'a']],
    ['more than asked for', many(102, (i) => `u-${String(i).padStart(3, '0')}`)],
    ['no texts', [1]],
    ['no list', undefined],
  ])('takes a source that lists its users %s for failed', async (_what, ids) => {
    const registry = indexed(connectionsOf('a'), { listUserIds: () => ids as string[] })
    await expect(listUsers({ registry }, FIRST, createAsk().ask)).rejects.toThrow(TypeError)
    const { completeness } = await listUsers({ registry, ...fakes({ contexts: [] }) }, FIRST, createAsk().ask)
    expect(completeness.truncated_sources).toEqual(['registry'])
  })

  it('walks the entries of each user where a source lists users but has no numbers, and stops within its bound', async () => {
    const connections = many(12, (i) => connection({ user_id: `user-${String(i % 4)}`, connection_id: String(i) }))
    const registry = indexed(connections, { observeUsers: undefined as never })
    const whole = await listUsers({ registry }, FIRST, createAsk().ask)
    expect(whole.items.map((user) => user.observed_connections)).toEqual([3, 3, 3, 3])
    expect(whole.completeness).toMatchObject({ complete: true, examined: { registry: 12 } })
    const cut = await listUsers({ registry }, FIRST, createAsk({ examined: 6 }).ask)
    expect(cut.items.map((user) => user.observed_connections)).toEqual([3, 3, null, null])
    expect(cut.completeness).toMatchObject({ complete: false, examined: { registry: 6 }, limits: { registry: 6 } })
  })

  it('cuts a list at 100 names and names every source that added to it', async () => {
    const connections = many(3, (i) =>
      connection({ connection_id: String(i), actions: many(50, (n) => `action-${i * 50 + n}`) }),
    )
    const { items, completeness } = await listUsers(
      fakes({ connections, contexts: contextsOf('alice') }),
      FIRST,
      createAsk().ask,
    )
    const names = items[0]?.observed_action_types ?? []
    expect([names.length, names]).toEqual([100, names.toSorted()])
    expect(completeness).toMatchObject({ complete: false, truncated_sources: ['registry'] })
    const full = await listUsers(fakes({ connections: connections.slice(0, 2) }), FIRST, createAsk().ask)
    expect([full.items[0]?.observed_action_types.length, full.completeness.complete]).toEqual([100, true])
  })

  it('names a source whose own numbers are cut, and only where that user is on the page', async () => {
    const registry = indexed(connectionsOf('a', 'b'), {
      observeUsers: (ids) => ids.map((user_id) => ({ user_id, observed_connections: 1, truncated: user_id === 'b' })),
    })
    const first = await listUsers(
      { registry, ...fakes({ contexts: contextsOf('A', 'a') }) },
      { limit: 1, cursor: null },
      createAsk().ask,
    )
    expect([first.items[0]?.user_id, first.completeness.complete, first.has_more]).toEqual(['A', true, true])
    expect((await listUsers({ registry }, FIRST, createAsk().ask)).completeness.truncated_sources).toEqual(['registry'])
  })

  it('ends every source at once when time is up, and keeps what the others gave', async () => {
    const { ask, stop } = createAsk()
    const inspectors: Inspectors = {
      registry: indexed(connectionsOf('alice')),
      ...fakes({ contexts: contextsOf('bob') }),
      rpc: { listPending: never, getPending: () => null },
    }
    const asked = listUsers(inspectors, FIRST, ask)
    await new Promise((resolve) => setImmediate(resolve))
    stop()
    const { items, completeness } = await asked
    expect(items.map((user) => [user.user_id, user.observed_connections, user.observed_contexts])).toEqual([
      ['alice', 1, 0],
      ['bob', 0, 1],
    ])
    expect(completeness).toMatchObject({ complete: false, truncated_sources: ['rpc'], examined: { rpc: 0 } })
  })

  it('fails when all fail: out of time before unavailable before anything else', async () => {
    const failing = (contexts: unknown, calls: unknown): Inspectors => ({
      contextRegistry: { listContexts: () => Promise.reject(contexts), getContext: () => null },
      rpc: { listPending: () => Promise.reject(calls), getPending: () => null },
    })
    const unavailable = new Refusal('unavailable')
    await expect(listUsers(failing(new Error('a'), unavailable), FIRST, createAsk().ask)).rejects.toBe(unavailable)
    await expect(listUsers(failing(unavailable, new Error('b')), FIRST, createAsk().ask)).rejects.toBe(unavailable)
    await expect(listUsers(failing(new Error('a'), new Error('b')), FIRST, createAsk().ask)).rejects.toThrow('a')
    const { ask, stop } = createAsk()
    const mixed = listUsers(
      { ...failing(unavailable, unavailable), contextRegistry: { listContexts: never, getContext: () => null } },
      FIRST,
      ask,
    )
    stop()
    await expect(mixed).rejects.toThrow('the deadline')
  })
})

describe('/users/{user_id}/summary', () => {
  const whole = {
    connections: [connection(), connection({ connection_id: 'c-2', client_id: 'phone', client_type: 'mobile' })],
    contexts: [context(), context({ context_id: 'x-2', status: 'stale' })],
    browserWindows: [browserWindow()],
    calls: [call()],
    streams: [stream()],
    deduplicator: { users: [{ user_id: 'alice', entries: 3, accepted: 3, duplicates: 1, oldest_at: null }] },
  }

  it('says what every source knows', async () => {
    expect(await summarizeUser(fakes(whole), 'alice', createAsk().ask)).toEqual({
      user_id: 'alice',
      sources: ['registry', 'context_registry', 'browser_window_registry', 'rpc', 'history', 'deduplicator'],
      observed_connections: 2,
      observed_client_types: ['browser', 'mobile'],
      observed_action_types: ['close', 'open'],
      observed_contexts: 2,
      observed_browser_windows: 1,
      last_seen_at: connection().last_seen_at,
      observed_client_ids: ['desk', 'phone'],
      contexts_by_status: { active: 0, idle: 1, closed: 0, stale: 1 },
      browser_windows_by_status: { open: 1, stale: 0, closed: 0 },
      observed_streams: 1,
      pending_rpc: 1,
      deduplicator: whole.deduplicator.users[0],
      completeness: expect.objectContaining({ complete: true, truncated_sources: [] }),
    })
  })

  it('has zeros for sources that do not know the user, and null for sources that are not there', async () => {
    const empty = { ...whole, contexts: [], browserWindows: [], calls: [], streams: [], deduplicator: { users: [] } }
    expect(await summarizeUser(fakes(empty), 'alice', createAsk().ask)).toMatchObject({
      observed_contexts: 0,
      contexts_by_status: { active: 0, idle: 0, closed: 0, stale: 0 },
      browser_windows_by_status: { open: 0, stale: 0, closed: 0 },
      observed_streams: 0,
      pending_rpc: 0,
      deduplicator: null,
    })
    expect(await summarizeUser(fakes({ connections: [connection()] }), 'alice', createAsk().ask)).toMatchObject({
      sources: ['registry'],
      observed_contexts: null,
      contexts_by_status: null,
      browser_windows_by_status: null,
      observed_streams: null,
      pending_rpc: null,
      deduplicator: null,
    })
  })

  it('is null only when every source was examined in full and none knows the user', async () => {
    expect(await summarizeUser(fakes(whole), 'nobody', createAsk().ask)).toBeNull()
    const cut: Inspectors = {
      ...fakes(whole),
      rpc: {
        listPending: (_, { cursor }) => ({ items: [], next_cursor: `${cursor}x`.slice(-50), has_more: true }),
        getPending: () => null,
      },
    }
    const failed: Inspectors = {
      ...fakes(whole),
      rpc: { listPending: () => Promise.reject(new Error('down')), getPending: () => null },
    }
    const deduplicator = {
      summary: () => Promise.reject(new Error('down')),
      userSummary: () => Promise.reject(new Error('down')),
    }
    for (const [inspectors, source] of [
      [cut, 'rpc'],
      [failed, 'rpc'],
      [{ ...fakes(whole), deduplicator }, 'deduplicator'],
    ] as const) {
      const summary = await summarizeUser(inspectors, 'nobody', createAsk().ask)
      expect(summary).toMatchObject({
        sources: [],
        observed_connections: 0,
        completeness: { complete: false, truncated_sources: [source] },
      })
      if (source === 'rpc') expect(summary?.pending_rpc).toBeNull()
    }
  })

  it('does not take entries of others for those of the user when a source ignores its filter', async () => {
    const { list } = listOf([connection({ user_id: 'bob' }), connection()])
    const registry = {
      listConnections: (_: object, page: { limit: number; cursor: string | null }) => list({}, page),
      getConnection: () => null,
    }
    expect(await summarizeUser({ registry }, 'alice', createAsk().ask)).toMatchObject({ observed_connections: 1 })
  })
})
