/** What is said of users when a source holds more than may be examined or shown. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/contract/families.js'
import { createFakeInspectors as fakes } from '../../src/testing/fake-inspectors.js'
import { listUsers } from '../../src/views/users.js'
import { connection } from '../diagnostics/world.js'
import { createAsk, FIRST, listOf, many } from './subject.js'
import { connectionsOf, contextsOf, indexed } from './user-sources.js'

describe('/users', () => {
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

  it('walks the entries of each user where a source lists users but has no numbers, and stops within its bound', async () => {
    const connections = many(12, (i) => connection({ user_id: `user-${String(i % 4)}`, connection_id: String(i) }))
    const registry = indexed(connections, { observeUsers: undefined as never })
    const whole = await listUsers({ registry }, FIRST, createAsk().ask)
    expect(whole.items.map((user) => user.observed_connections)).toEqual([3, 3, 3, 3])
    expect(whole.completeness).toMatchObject({ complete: true, examined: { registry: 4 + 12 } })
    const cut = await listUsers({ registry }, FIRST, createAsk({ examined: 10 }).ask)
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
})
