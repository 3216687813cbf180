/** What is said of users when a source fails, lies or hangs. */
import { describe, expect, it } from 'vitest'
import type { RegistryInspector } from '../../src/internal/contract/connections.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { Refusal } from '../../src/internal/refusal.js'
import { summarizeUser } from '../../src/internal/views/user-observation.js'
import { listUsers } from '../../src/internal/views/users.js'
import { createFakeInspectors as fakes } from '../../src/testing/kits.js'
import { connection } from '../diagnostics/world.js'
import { createInspectionContext, FIRST, many, never } from './subject.js'
import { connectionsOf, contextsOf, indexed } from './user-sources.js'

describe('/users', () => {
  it.each<[what: string, page: unknown]>([
    ['has more, but no token', { items: [], next_cursor: null, has_more: true }],
    ['holds more than its limit', { items: many(501, () => connection()), next_cursor: null, has_more: false }],
    ['is undefined', undefined],
  ])('treats a source whose page %s as failed', async (_what, page) => {
    const registry = { listConnections: () => page as never, getConnection: () => null }
    await expect(listUsers({ registry }, FIRST, createInspectionContext().ctx)).rejects.toThrow(TypeError)
    const { items, completeness } = await listUsers(
      { registry, ...fakes({ contexts: contextsOf('alice') }) },
      FIRST,
      createInspectionContext().ctx,
    )
    expect([items[0]?.observed_connections, completeness.truncated_sources]).toEqual([null, ['registry']])
  })

  it.each<[what: string, lie: unknown]>([
    ['nothing', null],
    ['a connection whose actions are no list', { ...connection(), actions: 'planted' }],
    ['a client type that there is not', { ...connection(), client_type: 'planted' }],
  ])('leaves out of a page what is %s, and takes the rest', async (_what, lie) => {
    const registry = {
      listConnections: () => ({ items: [connection(), lie], next_cursor: null, has_more: false }) as never,
      getConnection: () => null,
    }
    const inspectors = { registry, ...fakes({ contexts: contextsOf('alice') }) }
    const { items, completeness } = await listUsers(inspectors, FIRST, createInspectionContext().ctx)
    expect([items[0]?.observed_connections, completeness.truncated_sources]).toEqual([1, ['registry']])
    const { ctx, errors } = createInspectionContext()
    const summary = await summarizeUser(inspectors, 'alice', ctx)
    expect([summary?.observed_connections, summary?.completeness.truncated_sources]).toEqual([1, ['registry']])
    expect(errors).toEqual([['registry', expect.objectContaining({ fault: expect.objectContaining({ index: 1 }) })]])
  })

  it('keeps what a source gave before it failed', async () => {
    const listConnections = (_: object, { cursor }: { cursor: string | null }) => {
      if (cursor) throw new Refusal('unavailable')
      return { items: [connection()], next_cursor: 'on', has_more: true }
    }
    const { items, completeness } = await listUsers(
      { registry: { listConnections, getConnection: () => null } },
      FIRST,
      createInspectionContext().ctx,
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
      const { items, completeness } = await listUsers({ registry, ...others }, FIRST, createInspectionContext().ctx)
      expect(items.map((user) => [user.user_id, user.sources[0], user.observed_connections])).toEqual([
        ['alice', 'registry', null],
        ['bob', 'registry', null],
      ])
      expect([completeness.complete, completeness.truncated_sources]).toEqual([false, ['registry']])
    }
  })

  it('says nothing of one user where the index of every source fails', async () => {
    const down = new Refusal('unavailable')
    const registry = indexed(connectionsOf('alice'), { observeUsers: () => Promise.reject(down) })
    await expect(summarizeUser({ registry }, 'alice', createInspectionContext().ctx)).rejects.toBe(down)
  })

  it.each<[what: string, ids: unknown]>([
    ['out of order', ['b', 'a']],
    ['twice', ['a', 'a']],
    ['more than asked for', many(102, (i) => `u-${String(i).padStart(3, '0')}`)],
    ['no texts', [1]],
    ['no list', undefined],
  ])('takes a source that lists its users %s for failed', async (_what, ids) => {
    const registry = indexed(connectionsOf('a'), { listUserIds: () => ids as string[] })
    await expect(listUsers({ registry }, FIRST, createInspectionContext().ctx)).rejects.toThrow(TypeError)
    const { completeness } = await listUsers(
      { registry, ...fakes({ contexts: [] }) },
      FIRST,
      createInspectionContext().ctx,
    )
    expect(completeness.truncated_sources).toEqual(['registry'])
  })

  it('ends every source at once when time is up, and keeps what the others gave', async () => {
    const { ctx, stop } = createInspectionContext()
    const inspectors: Inspectors = {
      registry: indexed(connectionsOf('alice')),
      ...fakes({ contexts: contextsOf('bob') }),
      rpc: { listPending: never, getPending: () => null },
    }
    const asked = listUsers(inspectors, FIRST, ctx)
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
    await expect(listUsers(failing(new Error('a'), unavailable), FIRST, createInspectionContext().ctx)).rejects.toBe(
      unavailable,
    )
    await expect(listUsers(failing(unavailable, new Error('b')), FIRST, createInspectionContext().ctx)).rejects.toBe(
      unavailable,
    )
    await expect(
      listUsers(failing(new Error('a'), new Error('b')), FIRST, createInspectionContext().ctx),
    ).rejects.toThrow('a')
    const { ctx, stop } = createInspectionContext()
    const mixed = listUsers(
      { ...failing(unavailable, unavailable), contextRegistry: { listContexts: never, getContext: () => null } },
      FIRST,
      ctx,
    )
    stop()
    await expect(mixed).rejects.toThrow('the deadline')
  })
})
