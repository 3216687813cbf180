/** Aggregates when a source holds more than may be examined or shown, or shows rows again. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import type { UserSummary } from '../../src/internal/views/user-observation.js'
import { listUsers } from '../../src/internal/views/users.js'
import { createFakeInspectors as fakes } from '../../src/testing/kits.js'
import { createSubject, get } from '../diagnostics/subject.js'
import { browserWindow, connection, context } from '../diagnostics/world.js'
import { describeWorlds } from '../plugs/world.js'
import { createInspectionContext, FIRST, listOf, many, never } from './subject.js'
import { connectionsOf, contextsOf, indexed } from './user-sources.js'

describe('/users', () => {
  it('reports a source with 10,001 entries as truncated, and counts as unknown for users it may not have reached', async () => {
    const connections = many(10_000, (i) => connection({ connection_id: `c${i}` }))
    const { list, served } = listOf([...connections, connection({ user_id: 'zoe' })])
    const inspectors: Inspectors = {
      registry: { listConnections: list, getConnection: () => null },
      ...fakes({ contexts: contextsOf('zoe') }),
    }
    const { items, completeness } = await listUsers(inspectors, FIRST, createInspectionContext().ctx)
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
        createInspectionContext().ctx,
      )
      expect([asked, completeness.complete, completeness.truncated_sources]).toEqual([pages, false, ['registry']])
    }
  })

  it('walks the entries of each user where a source lists users but has no numbers, and stops within its bound', async () => {
    const connections = many(12, (i) => connection({ user_id: `user-${String(i % 4)}`, connection_id: String(i) }))
    const registry = indexed(connections, { observeUsers: undefined as never })
    const whole = await listUsers({ registry }, FIRST, createInspectionContext().ctx)
    expect(whole.items.map((user) => user.observed_connections)).toEqual([3, 3, 3, 3])
    expect(whole.completeness).toMatchObject({ complete: true, examined: { registry: 4 + 12 } })
    const cut = await listUsers({ registry }, FIRST, createInspectionContext({ examined: 10 }).ctx)
    expect(cut.items.map((user) => user.observed_connections)).toEqual([3, 3, null, null])
    expect(cut.completeness).toMatchObject({ complete: false, examined: { registry: 10 }, limits: { registry: 10 } })
  })

  it('cuts a list at 100 names and names every source that added to it', async () => {
    const connections = many(3, (i) =>
      connection({ connection_id: String(i), actions: many(50, (n) => `action-${i * 50 + n}`) }),
    )
    const { items, completeness } = await listUsers(
      fakes({ connections, contexts: contextsOf('alice') }),
      FIRST,
      createInspectionContext().ctx,
    )
    const names = items[0]?.observed_action_types ?? []
    expect([names.length, names]).toEqual([100, names.toSorted()])
    expect(completeness).toMatchObject({ complete: false, truncated_sources: ['registry'] })
    const full = await listUsers(fakes({ connections: connections.slice(0, 2) }), FIRST, createInspectionContext().ctx)
    expect([full.items[0]?.observed_action_types.length, full.completeness.complete]).toEqual([100, true])
  })

  it('names a source whose own numbers are cut, and only where that user is on the page', async () => {
    const registry = indexed(connectionsOf('a', 'b'), {
      observeUsers: (ids) => ids.map((user_id) => ({ user_id, observed_connections: 1, truncated: user_id === 'b' })),
    })
    const first = await listUsers(
      { registry, ...fakes({ contexts: contextsOf('A', 'a') }) },
      { limit: 1, cursor: null },
      createInspectionContext().ctx,
    )
    expect([first.items[0]?.user_id, first.completeness.complete, first.has_more]).toEqual(['A', true, true])
    expect(
      (await listUsers({ registry }, FIRST, createInspectionContext().ctx)).completeness.truncated_sources,
    ).toEqual(['registry'])
  })
})

describeWorlds('a user with more clients than a list shows', (open) => {
  it('is complete in /users, which shows no clients, and not in the summary, which cuts them', async () => {
    const world = await open()
    const { connections, contexts } = world.facilities
    for (let i = 0; i < 101; i++) {
      const client = { user_id: 'ada', client_id: `client${i}`, client_type: 'browser' as const }
      await connections.connect({ ...client, instance_id: 'tab', actions: [] })
      await contexts.report({ ...client, context_id: `context${i}`, status: 'idle' })
    }
    const user = { user_id: 'ada', observed_connections: 101, observed_contexts: 101 }
    expect(await world.ask('/users')).toMatchObject({
      items: [user],
      completeness: { complete: true, truncated_sources: [] },
    })
    const summary = await world.ask<UserSummary>('/users/ada/summary')
    expect(summary).toMatchObject({ ...user, completeness: { complete: false } })
    expect(summary.observed_client_ids).toHaveLength(100)
    expect(summary.completeness.truncated_sources).toEqual(['registry', 'context_registry'])
    await world.close()
  })
})

describe('a list that shows rows again', () => {
  /** Pages of two, of which each begins with the last row of the page before. */
  const again = <Entry extends object>(entries: readonly Entry[]) => {
    const { list } = listOf(entries)
    return (filter: object, { cursor }: PageQuery): Page<Entry> => {
      const at = Math.max(0, Number(cursor ?? 0) - 1)
      const { items } = list(filter, { limit: 2, cursor: String(at) })
      const has_more = list(filter, { limit: 500, cursor: String(at) }).items.length > 2
      return { items, next_cursor: has_more ? String(at + 2) : null, has_more }
    }
  }
  const ids = ['a', 'b', 'c', 'd', 'e']
  const inspectors = {
    registry: {
      listConnections: again(ids.map((connection_id) => connection({ connection_id }))),
      getConnection: never,
    },
    contextRegistry: {
      listContexts: again(ids.map((context_id) => context({ context_id, window_id: 'w', task_id: 't' }))),
      getContext: never,
    },
    browserWindowRegistry: {
      listBrowserWindows: again(ids.map((window_id) => browserWindow({ window_id }))),
      getBrowserWindow: () => browserWindow({ window_id: 'w' }),
    },
  }

  it.each([
    ['/connections/count', { total: 5 }],
    ['/contexts/count', { total: 5, by_ownership: { worker: 5 } }],
    ['/browser-windows/count', { total: 5 }],
    ['/actions', { items: [{ observed_connections: 5 }, { observed_connections: 5 }] }],
    ['/workers?user_id=alice', { assigned_count: 5, assigned: ids.map((context_id) => ({ context_id })) }],
    ['/users', { items: [{ observed_connections: 5, observed_contexts: 5, observed_browser_windows: 5 }] }],
    ['/users/alice/summary', { observed_connections: 5, observed_contexts: 5, observed_browser_windows: 5 }],
  ])('is counted once by %s, and completely', async (path, expected) => {
    const { status, body } = await get(createSubject({ inspectors }), path)
    expect({ status, body }).toMatchObject({ status: 200, body: { ...expected, completeness: { complete: true } } })
  })

  it('is counted once by a window', async () => {
    const { body } = await get(createSubject({ inspectors }), '/browser-windows/w')
    expect(body).toMatchObject({ worker_count: 5, busy_count: 5 })
  })

  it('is not complete where its cursors do not end', async () => {
    const listConnections = () => ({ items: [connection()], next_cursor: 'again', has_more: true })
    const router = createSubject({ inspectors: { registry: { listConnections, getConnection: never } } })
    const { body } = await get(router, '/connections/count')
    expect(body).toMatchObject({ total: 1, completeness: { complete: false, truncated_sources: ['registry'] } })
  })
})
