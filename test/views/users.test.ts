/** Which users are listed, in which order, and what is said of each. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { listUsers } from '../../src/internal/views/users.js'
import { createFakeInspectors as fakes } from '../../src/testing/kits.js'
import { browserWindow, call, connection, stream } from '../diagnostics/world.js'
import { createInspectionContext, FIRST, many } from './subject.js'
import { connectionsOf, contextsOf, indexed } from './user-sources.js'

async function walkUsers(inspectors: Inspectors, limit: number) {
  const ids: string[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < 500; pages++) {
    const page = await listUsers(inspectors, { limit, cursor }, createInspectionContext().ctx)
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
    const { ctx, errors } = createInspectionContext()
    const { items, completeness } = await listUsers(inspectors, FIRST, ctx)
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
    expect(errors).toEqual([['browser_window_registry', new Error('down')]])
    const absent = await listUsers(fakes({ connections: connectionsOf('alice') }), FIRST, createInspectionContext().ctx)
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
    const { items } = await listUsers(fakes({ connections: [gone] }), FIRST, createInspectionContext().ctx)
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
    const { items, completeness } = await listUsers(inspectors, FIRST, createInspectionContext().ctx)
    expect(items.map((user) => [user.user_id, user.sources])).toEqual([
      ['carol', ['rpc']],
      ['dora', ['history']],
    ])
    expect(Object.keys(completeness.examined)).toEqual(['rpc', 'history'])
    const without = await listUsers(fakes({ calls: [], messages: [] }), FIRST, createInspectionContext().ctx)
    expect(Object.keys(without.completeness.examined)).toEqual(['rpc'])
  })
})
