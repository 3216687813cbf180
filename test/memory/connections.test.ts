import { describe, expect, it } from 'vitest'
import { createConnectionRegistry } from '../../src/memory/connections/facility.js'
import { ASK, createClock, FIRST, walk } from '../contract/clock.js'
import { connectionBattery } from '../contract/connections.js'

connectionBattery('memory', (options) => createConnectionRegistry(options))

const client = (i: number, user_id = 'ann') =>
  ({ user_id, client_id: `c${i}`, instance_id: `i${i}`, client_type: 'web' }) as const

describe('the connection registry in memory', () => {
  it('returns one frozen object per connection until it changes', async () => {
    const registry = createConnectionRegistry({ nodeId: 'n1', newId: () => 'id1' })
    const made = await registry.connect({ ...client(1), actions: ['a'], metadata: { deep: { er: [1] } } })
    expect(made).toMatchObject({ connection_id: 'id1', node_id: 'n1' })
    expect(await registry.inspector.getConnection('id1', ASK)).toBe(made)
    expect((await registry.inspector.listConnections({}, FIRST, ASK)).items[0]).toBe(made)
    expect([made, made.actions, made.metadata, made.metadata.deep].every(Object.isFrozen)).toBe(true)
    await registry.heartbeat('id1')
    expect(await registry.inspector.getConnection('id1', ASK)).not.toBe(made)
  })

  it('refuses connections over its limit, but not one that replaces an earlier one of the same client', async () => {
    const registry = createConnectionRegistry({ maxConnections: 2 })
    const first = await registry.connect(client(1))
    await registry.connect(client(2))
    await expect(registry.connect(client(3))).rejects.toMatchObject({ code: 'capacity_exceeded' })
    await registry.connect({ ...client(1), instance_id: 'again' })
    await registry.disconnect(first.connection_id)
    expect(await registry.currentInstance(client(1))).toBe('again')
  })

  it('keeps a bounded number of disconnected connections, the latest', async () => {
    const registry = createConnectionRegistry({ maxDisconnected: 3 })
    for (let i = 0; i < 10; i++) await registry.disconnect((await registry.connect(client(i))).connection_id)
    const kept = await walk((page) => registry.inspector.listConnections({}, page, ASK))
    expect(kept.map((c) => c.client_id)).toEqual(['c7', 'c8', 'c9'])
  })

  it('examines at most ten thousand entries for a filter without matches, and returns a cursor', async () => {
    const registry = createConnectionRegistry()
    for (let i = 0; i < 10_001; i++) await registry.connect(client(i))
    const page = await registry.inspector.listConnections({ status: 'disconnected' }, FIRST, ASK)
    expect(page).toEqual({ items: [], next_cursor: '10000', has_more: true, examined: 10_000 })
    expect(
      await registry.inspector.listConnections({ status: 'disconnected' }, { ...FIRST, cursor: '10000' }, ASK),
    ).toMatchObject({ items: [], next_cursor: null, has_more: false })
  })

  it('returns correct results while more is due than one call sweeps', async () => {
    const clock = createClock()
    const { inspector, ...registry } = createConnectionRegistry({ now: clock.now })
    for (let i = 0; i < 25_000; i++) await registry.connect(client(i))
    const { connection_id } = await registry.connect(client(25_000))
    clock.advance(90_000)
    expect(await inspector.countConnections?.({}, ASK)).toBeNull()
    const events = await inspector.listConnectionHistory?.(connection_id, FIRST, ASK)
    expect(events?.items.at(-1)).toMatchObject({ reason: 'heartbeat_lost' })
    expect(await inspector.getConnection(connection_id, ASK)).toMatchObject({ status: 'disconnected' })
    expect(await inspector.countConnections?.({}, ASK)).toMatchObject({ total: 10_000, by_status: { connected: 0 } })
  })

  it('returns counts that match the list when one entry was read before the sweep', async () => {
    const clock = createClock()
    const { inspector, ...registry } = createConnectionRegistry({
      now: clock.now,
      retentionMs: 1_000,
      maxDisconnected: 20_000,
    })
    for (let i = 0; i < 15_000; i++) await registry.connect(client(i))
    clock.advance(500)
    const { connection_id } = await registry.connect(client(15_000))
    clock.advance(90_000)
    expect(await inspector.getConnection(connection_id, ASK)).toMatchObject({ status: 'disconnected' })
    expect(await inspector.countConnections?.({}, ASK)).toMatchObject({ by_status: { disconnected: 15_001 } })
    clock.advance(500)
    await inspector.countConnections?.({}, ASK)
    expect(await inspector.countConnections?.({}, ASK)).toMatchObject({ total: 1 })
    expect(await walk((page) => inspector.listConnections({}, page, ASK))).toMatchObject([{ connection_id }])
  })

  it('does not count connections that timed out while the sweep lags, and reports users it did not reach', async () => {
    const clock = createClock()
    const { inspector, ...registry } = createConnectionRegistry({ now: clock.now })
    for (let i = 0; i < 30_000; i++)
      await registry.connect({ ...client(i, i < 25_000 ? 'ann' : 'bob'), actions: ['a'] })
    clock.advance(80_000)
    await registry.connect({ ...client(30_000, 'bob'), actions: ['b'] })
    clock.advance(10_000)
    expect(await inspector.listActions?.({}, FIRST, ASK)).toBeNull()
    expect(await inspector.observeUsers?.(['ann', 'bob'], ASK)).toMatchObject([
      { user_id: 'ann', truncated: true },
      { user_id: 'bob', observed_connections: 1, observed_action_types: new Set(['b']) },
    ])
  })

  it('truncates the actions of a user with more than a hundred, and returns one client id more than are shown', async () => {
    const { inspector, ...registry } = createConnectionRegistry()
    for (let i = 0; i < 101; i++) await registry.connect({ ...client(i), actions: [`a${i}`] })
    const [part] = (await inspector.observeUsers?.(['ann'], ASK)) ?? []
    expect(part?.truncated).toBe(true)
    expect(part?.observed_action_types).toHaveLength(100)
    expect(part?.observed_client_ids).toHaveLength(101)
    expect(part?.observed_connections).toBe(101)
  })

  it('keeps nothing of users and actions that are gone', async () => {
    const clock = createClock()
    const { inspector, ...registry } = createConnectionRegistry({ now: clock.now })
    for (let i = 0; i < 50; i++) await registry.connect({ ...client(i, `u${i}`), actions: [`a${i}`, 'all'] })
    clock.advance(90_000 + 3_600_000)
    expect(await inspector.listUserIds?.({ after: null, limit: 100 }, ASK)).toEqual([])
    const actions = await inspector.listActions?.({}, FIRST, ASK)
    expect(actions).toMatchObject({ items: [], next_cursor: null, has_more: false })
    expect(await inspector.countConnections?.({}, ASK)).toMatchObject({ total: 0 })
  })
})
