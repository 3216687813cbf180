/** What every connection registry must do, whatever it keeps its connections in. */

import { beforeEach, describe, expect, it } from 'vitest'
import type {
  ConnectInput,
  Connection,
  ConnectionFilter,
  ConnectionRegistry,
  RegistryInspector,
} from '../../src/internal/contract/connections.js'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { Awaitable, PageQuery } from '../../src/internal/contract/page.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'
import { churning } from './connection-churn.js'
import { endings } from './connection-endings.js'
import { clientEvents } from './connection-events.js'
import { withSortedLists } from './parts.js'

export type ConnectionFacility = Inspected<ConnectionRegistry, RegistryInspector>

export function connectionBattery(
  name: string,
  make: (options: {
    now: () => number
    heartbeatTimeoutMs: number
    retentionMs: number
  }) => Awaitable<ConnectionFacility>,
): void {
  describe(`connections in ${name}`, () => {
    let clock: Clock
    let registry: ConnectionFacility
    let inspector: RegistryInspector

    beforeEach(async () => {
      clock = createClock()
      registry = await make({ now: clock.now, heartbeatTimeoutMs: 90_000, retentionMs: 3_600_000 })
      inspector = registry.inspector
    })

    const connect = (over: Partial<ConnectInput> = {}) =>
      registry.connect({ user_id: 'ann', client_id: 'desk', instance_id: 'one', client_type: 'console', ...over })
    const list = async (filter: ConnectionFilter = {}) => walk((page) => inspector.listConnections(filter, page, ASK))
    const idsOf = async (filter: ConnectionFilter = {}) => (await list(filter)).map((c) => c.connection_id)
    const historyOf = (id: string) =>
      walk(async (page) => {
        const answer = await inspector.listConnectionHistory?.(id, page, ASK)
        if (!answer) throw new Error('no connection history')
        return answer
      })
    const actions = (filter = {}) =>
      walk(async (page) => {
        const answer = await inspector.listActions?.(filter, page, ASK)
        if (!answer) throw new Error('no actions')
        return answer
      }, 2)

    it('answers what connected, in full', async () => {
      const connection = await connect({ actions: ['open', { name: 'close' }], metadata: { version: 3 } })
      expect(connection).toEqual({
        connection_id: connection.connection_id,
        user_id: 'ann',
        client_id: 'desk',
        instance_id: 'one',
        client_type: 'console',
        node_id: connection.node_id,
        status: 'connected',
        connected_at: at(),
        last_seen_at: at(),
        disconnected_at: null,
        ended_reason: null,
        superseded_count: 0,
        actions: ['open', 'close'],
        metadata: { version: 3 },
      })
      expect(await inspector.getConnection(connection.connection_id, ASK)).toEqual(connection)
      expect(await list()).toEqual([connection])
    })

    it('lists those last seen at or before a time', async () => {
      const { connection_id: first } = await connect({ user_id: 'ann' })
      clock.advance(10_000)
      const { connection_id: second } = await connect({ user_id: 'bob' })
      expect(await idsOf({ last_seen_before: at(-1) })).toEqual([])
      expect(await idsOf({ last_seen_before: at(9_999) })).toEqual([first])
      expect((await idsOf({ last_seen_before: at(10_000) })).sort()).toEqual([first, second].sort())
      expect(await idsOf({ last_seen_before: at(10_000), user_id: 'bob' })).toEqual([second])
      await registry.heartbeat(first)
      expect(await idsOf({ last_seen_before: at(9_999) })).toEqual([])
      const counted = await inspector.countConnections?.({ last_seen_before: at(10_000), user_id: 'ann' }, ASK)
      expect(counted?.total ?? 1).toBe(1)
    })

    it('lists the users whose ids begin with a prefix', async () => {
      for (const user_id of ['a', 'ann', 'annika', 'bob', 'änn', '\u{1f600}x']) await connect({ user_id })
      const under = async (prefix: string, after: string | null = null, limit = 100) => [
        ...((await inspector.listUserIds?.({ after, limit, prefix }, ASK)) ?? []),
      ]
      expect(await under('ann')).toEqual(['ann', 'annika'])
      expect(await under('ann', null, 1)).toEqual(['ann'])
      expect(await under('ann', 'ann')).toEqual(['annika'])
      expect(await under('ann', 'annika')).toEqual([])
      expect(await under('annk')).toEqual([])
      expect(await under('\u{1f600}')).toEqual(['\u{1f600}x'])
      expect(await under('ä', 'a')).toEqual(['änn'])
    })

    it('knows nothing of an id that was never given', async () => {
      for (const id of ['nope', '__proto__', 'constructor', 'toString']) {
        expect(await inspector.getConnection(id, ASK)).toBeNull()
        expect(await registry.heartbeat(id)).toBe(false)
        expect(await registry.disconnect(id)).toBe(false)
        expect(await inspector.listConnectionHistory?.(id, { limit: 1, cursor: null }, ASK)).toBeNull()
      }
    })

    it('fences an instance that another one has superseded', async () => {
      const old = await connect()
      clock.advance(1_000)
      const young = await connect({ instance_id: 'two' })
      const desk = { user_id: 'ann', client_id: 'desk' }
      expect(await registry.currentInstance(desk)).toBe('two')
      expect(await registry.isCurrentInstance({ ...desk, instance_id: 'one' })).toBe(false)
      expect(await registry.isCurrentInstance({ ...desk, instance_id: 'two' })).toBe(true)
      expect(await registry.heartbeat(old.connection_id)).toBe(false)
      expect(await registry.disconnect(old.connection_id)).toBe(false)
      expect(await inspector.getConnection(old.connection_id, ASK)).toMatchObject({
        status: 'disconnected',
        disconnected_at: at(1_000),
      })
      expect(await historyOf(old.connection_id)).toEqual([
        { connection_id: old.connection_id, event: 'connected', at: at(), reason: null },
        { connection_id: old.connection_id, event: 'superseded', at: at(1_000), reason: 'new_instance' },
      ])
      expect(await idsOf({ status: 'connected' })).toEqual([young.connection_id])
    })

    clientEvents(() => ({ clock, registry }))
    endings(() => ({ clock, registry }))
    churning(() => ({ clock, registry }))

    it('keeps clients of other names and users apart', async () => {
      await connect()
      await connect({ client_id: 'phone', instance_id: 'two' })
      await connect({ user_id: 'bob', instance_id: 'three' })
      expect(await registry.currentInstance({ user_id: 'ann', client_id: 'desk' })).toBe('one')
      expect(await registry.currentInstance({ user_id: 'bob', client_id: 'desk' })).toBe('three')
      expect(await registry.currentInstance({ user_id: 'bob', client_id: 'phone' })).toBeNull()
      expect(await registry.currentInstance({ user_id: 'ann\ndesk', client_id: '' })).toBeNull()
    })

    it('ends the connection before when the same instance connects again', async () => {
      const old = await connect()
      const young = await connect()
      expect(young.connection_id).not.toBe(old.connection_id)
      expect((await historyOf(old.connection_id)).at(-1)).toMatchObject({
        event: 'disconnected',
        reason: 'reconnected',
      })
      expect(await registry.currentInstance(old)).toBe('one')
    })

    it('records signs of life and the end', async () => {
      const { connection_id } = await connect()
      clock.advance(5_000)
      expect(await registry.heartbeat(connection_id)).toBe(true)
      expect(await inspector.getConnection(connection_id, ASK)).toMatchObject({ last_seen_at: at(5_000) })
      clock.advance(1_000)
      expect(await registry.disconnect(connection_id, 'client_closed')).toBe(true)
      expect(await registry.disconnect(connection_id)).toBe(false)
      expect(await registry.currentInstance({ user_id: 'ann', client_id: 'desk' })).toBeNull()
      expect((await historyOf(connection_id)).at(-1)).toEqual({
        connection_id,
        event: 'disconnected',
        at: at(6_000),
        reason: 'client_closed',
      })
    })

    it('takes no sign of life back where the clock goes back', async () => {
      const { connection_id } = await connect()
      const seen = async () => (await inspector.getConnection(connection_id, ASK))?.last_seen_at
      clock.advance(-4_000)
      expect(await registry.heartbeat(connection_id, { room: 'hall' })).toBe(true)
      expect(await inspector.getConnection(connection_id, ASK)).toMatchObject({
        last_seen_at: at(),
        metadata: { room: 'hall' },
      })
      clock.advance(9_000)
      await registry.heartbeat(connection_id)
      const last = await seen()
      clock.advance(-4_000)
      expect(await registry.heartbeat(connection_id)).toBe(true)
      expect([last, await seen()]).toEqual([at(5_000), at(5_000)])
    })

    it('says how much of a history it looked at', async () => {
      const { connection_id } = await connect()
      await registry.disconnect(connection_id)
      const examined = async (page: PageQuery) =>
        (await inspector.listConnectionHistory?.(connection_id, page, ASK))?.examined
      expect(await examined({ limit: 1, cursor: null })).toBe(1)
      expect(await examined({ limit: 9, cursor: null })).toBe(2)
    })

    it('takes what a client says of itself now with a sign of life', async () => {
      const { connection_id } = await connect({ actions: ['open'], metadata: { room: 'hall', version: 3 } })
      clock.advance(1_000)
      expect(await registry.heartbeat(connection_id, { room: 'yard' })).toBe(true)
      const moved = { metadata: { room: 'yard' }, actions: ['open'], last_seen_at: at(1_000) }
      expect(await inspector.getConnection(connection_id, ASK)).toMatchObject(moved)
      clock.advance(1_000)
      expect(await registry.heartbeat(connection_id)).toBe(true)
      const after = await inspector.getConnection(connection_id, ASK)
      expect([after?.metadata, after?.last_seen_at]).toEqual([{ room: 'yard' }, at(2_000)])
      const large = { all: 'x'.repeat(65_536) }
      await expect(registry.heartbeat(connection_id, large)).rejects.toMatchObject({ code: 'payload_too_large' })
      await expect(registry.heartbeat(connection_id, [] as never)).rejects.toMatchObject({ code: 'invalid_input' })
      expect(await registry.heartbeat(connection_id, {})).toBe(true)
      expect((await inspector.getConnection(connection_id, ASK))?.metadata).toEqual({})
    })

    it('keeps a reason that is no low-cardinality name as other', async () => {
      const { connection_id } = await connect()
      await registry.disconnect(connection_id, 'user@example.test said "bye"')
      expect((await historyOf(connection_id)).at(-1)?.reason).toBe('other')
    })

    it('reads a silent connection as disconnected from the moment at which it was lost', async () => {
      const { connection_id } = await connect()
      clock.advance(89_999)
      expect(await registry.isCurrentInstance({ user_id: 'ann', client_id: 'desk', instance_id: 'one' })).toBe(true)
      clock.advance(500_001)
      expect(await inspector.getConnection(connection_id, ASK)).toMatchObject({
        status: 'disconnected',
        disconnected_at: at(90_000),
      })
      expect((await historyOf(connection_id)).at(-1)).toMatchObject({ reason: 'heartbeat_lost', at: at(90_000) })
      expect(await registry.heartbeat(connection_id)).toBe(false)
      expect(await registry.currentInstance({ user_id: 'ann', client_id: 'desk' })).toBeNull()
    })

    it('forgets a disconnected connection after its retention', async () => {
      const { connection_id } = await connect()
      await registry.disconnect(connection_id)
      clock.advance(3_599_999)
      expect(await idsOf()).toEqual([connection_id])
      clock.advance(1)
      expect(await list()).toEqual([])
      expect(await inspector.getConnection(connection_id, ASK)).toBeNull()
      expect([...((await inspector.listUserIds?.({ after: null, limit: 9 }, ASK)) ?? [])]).toEqual([])
    })

    it('filters by every field, alone and together', async () => {
      const types = ['browser', 'console', 'mobile', 'web'] as const
      const made: Connection[] = []
      for (let i = 0; i < 24; i++)
        made.push(
          await connect({
            user_id: `u${i % 3}`,
            client_id: `c${i % 4}`,
            instance_id: `i${i}`,
            client_type: types[i % 4],
          }),
        )
      const now = await list()
      expect(now).toHaveLength(24)
      const filters: ConnectionFilter[] = [
        { user_id: 'u1' },
        { client_id: 'c2' },
        { client_type: 'mobile' },
        { status: 'connected' },
        { user_id: 'u1', client_id: 'c2' },
        { user_id: 'u2', status: 'disconnected' },
        { user_id: 'u0', client_type: 'web', status: 'connected', client_id: 'c3' },
        { user_id: 'missing' },
        { user_id: '__proto__' },
        { ended_reason: 'client_closed' },
        { ended_reason: 'new_instance' },
        { ended_reason: 'nothing_like_it' },
        { user_id: 'u2', ended_reason: 'new_instance' },
        { node_id: 'elsewhere' },
        { node_id: 'elsewhere', ended_reason: 'new_instance' },
        ...(now[0]?.node_id ? [{ node_id: now[0].node_id }, { node_id: now[0].node_id, user_id: 'u1' }] : []),
      ]
      expect(now.some(({ ended_reason }) => ended_reason === 'new_instance')).toBe(true)
      for (const filter of filters) {
        const expected = now.filter((c) => Object.entries(filter).every(([k, v]) => c[k as keyof Connection] === v))
        expect(await list(filter)).toEqual(expect.arrayContaining(expected))
        expect(await list(filter)).toHaveLength(expected.length)
        expect((await inspector.countConnections?.(filter, ASK))?.total).toBe(expected.length)
      }
      expect(await inspector.countConnections?.({}, ASK)).toMatchObject({
        total: 24,
        by_status: { connected: 12, disconnected: 12 },
        by_client_type: { browser: 6, console: 6, mobile: 6, web: 6 },
      })
    })

    it('shows once each connection that was there throughout, while others come and go', async () => {
      const stay: string[] = []
      const leave: string[] = []
      for (let i = 0; i < 60; i++) {
        const { connection_id } = await connect({ client_id: `c${i}` })
        if (i % 3 === 0) leave.push(connection_id)
        else stay.push(connection_id)
      }
      const seen: string[] = []
      let cursor: string | null = null
      for (let page = 0; page < 50; page++) {
        const answer = await inspector.listConnections({ status: 'connected' }, { limit: 7, cursor }, ASK)
        seen.push(...answer.items.map((c) => c.connection_id))
        expect(answer.items.length).toBeLessThanOrEqual(7)
        if (!answer.has_more) break
        cursor = answer.next_cursor
        const gone = leave.pop()
        if (gone) await registry.disconnect(gone)
        await registry.heartbeat(stay[page] as string)
      }
      for (const id of stay) expect(seen.filter((s) => s === id)).toHaveLength(1)
    })

    it('refuses a cursor that it did not hand out', async () => {
      for (const cursor of ['', '-1', '01', '1e3', 'x', '9'.repeat(17), ' 1'])
        await expect(async () => inspector.listConnections({}, { limit: 5, cursor }, ASK)).rejects.toMatchObject({
          code: 'invalid_cursor',
        })
    })

    it('counts who offers an action, among those connected', async () => {
      await connect({
        actions: ['b.open', { name: 'a.close', description: 'closes', parameters_schema: { type: 'object' } }],
      })
      await connect({ client_id: 'tab', client_type: 'browser', actions: ['b.open', 'b.open'] })
      await connect({ user_id: 'bob', client_type: 'browser', actions: ['b.open', 'c.print'] })
      const gone = await connect({ user_id: 'cid', actions: ['b.open', 'd.gone'] })
      await registry.disconnect(gone.connection_id)
      const bare = { description: null, parameters_schema: null }
      const open = { name: 'b.open', ...bare }
      const close = { name: 'a.close', description: 'closes', parameters_schema: { type: 'object' } }
      const print = { name: 'c.print', ...bare }
      const offered = (connections: number, users: number, ...types: string[]) => ({
        observed_connections: connections,
        observed_users: users,
        observed_client_types: types,
      })
      expect(await actions()).toEqual([
        { ...close, ...offered(1, 1, 'console') },
        { ...open, ...offered(3, 2, 'browser', 'console') },
        { ...print, ...offered(1, 1, 'browser') },
      ])
      expect(await actions({ client_type: 'browser' })).toEqual([
        { ...open, ...offered(2, 2, 'browser') },
        { ...print, ...offered(1, 1, 'browser') },
      ])
      expect(await actions({ user_id: 'ann' })).toEqual([
        { ...close, ...offered(1, 1, 'console') },
        { ...open, ...offered(2, 1, 'browser', 'console') },
      ])
      expect(await actions({ user_id: 'ann', client_type: 'browser' })).toEqual([
        { ...open, ...offered(1, 1, 'browser') },
      ])
      expect(await actions({ user_id: 'cid' })).toEqual([])
    })

    it('no longer counts the actions of a connection that was superseded or lost', async () => {
      await connect({ actions: ['one'] })
      await connect({ instance_id: 'two', actions: ['two'] })
      expect((await actions()).map((action) => action.name)).toEqual(['two'])
      clock.advance(90_000)
      expect(await actions()).toEqual([])
    })

    it('lists users in the order of their UTF-8 bytes', async () => {
      for (const user_id of ['zoe', 'ann', '\u{1f600}', '\ufffd', 'Ann', 'é', 'ann'])
        await connect({ user_id, client_id: `c-${user_id}` })
      const all = await inspector.listUserIds?.({ after: null, limit: 9 }, ASK)
      expect([...(all ?? [])]).toEqual(['Ann', 'ann', 'zoe', 'é', '\ufffd', '\u{1f600}'])
      expect([...((await inspector.listUserIds?.({ after: 'ann', limit: 2 }, ASK)) ?? [])]).toEqual(['zoe', 'é'])
      expect([...((await inspector.listUserIds?.({ after: 'b', limit: 1 }, ASK)) ?? [])]).toEqual(['zoe'])
    })

    it('tells what it knows of users, and nothing of others', async () => {
      await connect({ actions: ['open'] })
      clock.advance(1_000)
      await connect({ client_id: 'tab', client_type: 'browser', actions: ['print', 'open'] })
      const gone = await connect({ client_id: 'phone', client_type: 'mobile', actions: ['call'] })
      await registry.disconnect(gone.connection_id)
      expect(withSortedLists(await inspector.observeUsers?.(['missing', 'ann'], ASK))).toEqual([
        {
          user_id: 'ann',
          observed_connections: 2,
          observed_client_types: ['browser', 'console'],
          observed_action_types: ['open', 'print'],
          observed_client_ids: ['desk', 'phone', 'tab'],
          last_seen_at: at(1_000),
        },
      ])
    })

    it('refuses an invalid connection and stores nothing of it', async () => {
      const bad: Partial<Record<keyof ConnectInput, unknown>>[] = [
        { user_id: '' },
        { user_id: 'a\nb' },
        { user_id: 7 },
        { client_id: 'x'.repeat(257) },
        { instance_id: '\u202e' },
        { client_type: 'toaster' },
        { actions: [''] },
        { actions: Array.from({ length: 501 }, (_, i) => `a${i}`) },
        { metadata: [] },
        { metadata: { big: 1n } },
        { metadata: { toJSON: () => 'no object' } },
        { metadata: { [Symbol('s')]: 1 } },
      ]
      for (const over of bad)
        await expect(async () => connect(over as Partial<ConnectInput>)).rejects.toMatchObject({
          code: 'invalid_input',
        })
      await expect(async () => connect({ action: ['read'] } as Partial<ConnectInput>)).rejects.toMatchObject({
        code: 'invalid_input',
        detail: 'Unknown field "action". Did you mean "actions"?',
      })
      const actions = [{ name: 'read', descripton: 'Reads.' }]
      await expect(async () => connect({ actions })).rejects.toMatchObject({
        code: 'invalid_input',
        detail: expect.stringMatching(/^Unknown field "\S*descripton"\. Did you mean "\S*description"\?$/),
      })
      const large = { metadata: { text: 'x'.repeat(65_536) } }
      await expect(async () => connect(large)).rejects.toMatchObject({ code: 'payload_too_large' })
      expect(await list()).toEqual([])
    })

    it('is not changed by what its caller does to the input afterwards', async () => {
      const metadata = { tags: ['a'] }
      const { connection_id } = await connect({ metadata })
      metadata.tags.push('b')
      expect(await inspector.getConnection(connection_id, ASK)).toMatchObject({ metadata: { tags: ['a'] } })
    })
  })
}
