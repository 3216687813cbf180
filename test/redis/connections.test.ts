import { describe, expect, it } from 'vitest'
import type { ChurnFilter, ConnectionFilter } from '../../src/internal/contract/connections.js'
import type { InspectionContext } from '../../src/internal/contract/page.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, createClock } from '../contract/clock.js'
import { connectionBattery } from '../contract/connections.js'
import { describeStores, planted } from './matrix.js'
import { soon } from './wait-for.js'

const client = { client_id: 'desk', instance_id: 'one', client_type: 'web' as const }

describeStores('the connection registry in Redis', (kind, place, servers) => {
  connectionBattery(kind, (options) => createRedisConnectionRegistry({ ...place(), ...options }))

  describe('with more connections than the scan limit', () => {
    const BOUND = 20
    const bounded = { ...ASK, scanBudget: BOUND }

    async function many() {
      const clock = createClock()
      const where = { ...place(), now: clock.now }
      const [crowd, lone] = ['crowd', 'lone'].map((nodeId) => createRedisConnectionRegistry({ ...where, nodeId }))
      if (!crowd || !lone) throw new Error('no registries')
      for (let i = 0; i < 3 * BOUND; i++) {
        const { connection_id } = await crowd.connect({ ...client, user_id: `u${i}` })
        if (i % 2) await crowd.disconnect(connection_id, 'left')
      }
      const { connection_id } = await lone.connect({ ...client, user_id: 'ann' })
      const { inspector } = lone
      const list = async (filter: ConnectionFilter, ctx: InspectionContext = bounded) =>
        inspector.listConnections(filter, { cursor: null, limit: 10 }, ctx)
      return { clock, lone, connection_id, inspector, list, deploymentId: where.deploymentId }
    }

    it('lists those of a node, or with an ended_reason, without examining the others', async () => {
      const { lone, connection_id, inspector, list } = await many()
      const one = { items: [{ connection_id }], has_more: false }
      expect(await list({ node_id: 'lone' })).toMatchObject(one)
      await lone.disconnect(connection_id, 'kicked')
      expect(await list({ ended_reason: 'kicked' })).toMatchObject(one)
      expect(await list({ ended_reason: 'kicked', node_id: 'crowd' })).toMatchObject({ items: [], has_more: true })
      expect(await inspector.countConnections?.({ node_id: 'lone' }, bounded)).toMatchObject({ total: 1 })
      expect(await inspector.countConnections?.({ ended_reason: 'left' }, ASK)).toMatchObject({ total: 30 })
    })

    it('samples their actions within the scan limit, and keeps no separate data of actions', async () => {
      const where = place()
      const registry = createRedisConnectionRegistry(where)
      const open = { name: 'open', description: 'opens', parameters_schema: null }
      for (let i = 0; i < BOUND; i++) await registry.connect({ ...client, user_id: `u${i}`, actions: [open, 'close'] })
      const list = (ctx: InspectionContext) => registry.inspector.listActions?.({}, { cursor: null, limit: 10 }, ctx)
      const counted = { observed_connections: BOUND, observed_users: BOUND, observed_client_types: ['web'] }
      const whole = await list(ASK)
      expect(whole?.items).toEqual([
        { name: 'close', description: null, parameters_schema: null, ...counted },
        { ...open, ...counted },
      ])
      expect([whole?.truncated, whole?.examined]).toEqual([undefined, BOUND])
      const sample = await list({ ...ASK, scanBudget: BOUND / 2 })
      expect(sample?.truncated).toBe(true)
      expect(sample?.examined).toBeLessThanOrEqual(BOUND / 2)
      expect(sample?.items[0]?.observed_connections).toBeLessThanOrEqual(BOUND / 2)
      const names = await Promise.all(servers().map(({ cli }) => cli('KEYS', `*${where.deploymentId}*`)))
      expect(names.join('\n')).toContain(':connections:')
      expect(names.join('\n')).not.toMatch(/:connections:(action|offers)/)
    })

    it('finds connections that timed out before a script has recorded it', async () => {
      const { clock, list } = await many()
      clock.advance(120_000)
      expect((await list({ ended_reason: 'heartbeat_lost' }, ASK)).items).toHaveLength(10)
    })

    it('keeps none of them in any list', async () => {
      const { clock, lone, connection_id, deploymentId } = await many()
      await lone.disconnect(connection_id, 'kicked')
      clock.advance(30 * 24 * 3_600_000)
      // Each new connection removes a few expired ones.
      for (let i = 0; i < 6 * BOUND; i++) await lone.connect({ ...client, user_id: `u${i}` })
      const names = await Promise.all(
        servers().map(({ cli }) => cli('KEYS', `relayscope:{${deploymentId}:*}:connections:*`)),
      )
      expect(names.join('\n')).toContain(':connections:node_id:lone')
      expect(names.join('\n')).not.toMatch(/:connections:(node_id:crowd|ended_reason:)/)
    })
  })

  describe('connections opened and ended on several nodes', () => {
    function start() {
      const clock = createClock()
      const where = { ...place(), now: clock.now }
      const node = (nodeId: string) => createRedisConnectionRegistry({ ...where, nodeId })
      const [a, b] = [node('a'), node('node b')]
      const minutes = async (filter: ChurnFilter = {}) => (await a.inspector.connectionChurn?.(filter, ASK))?.items
      return { clock, where, a, b, minutes }
    }

    it('counts each, and a connection at the node that had it', async () => {
      const { a, b, minutes } = start()
      for (let i = 0; i < 12; i++) await a.connect({ ...client, user_id: `u${i}` })
      for (let i = 0; i < 6; i++) await b.connect({ ...client, user_id: `u${i}`, instance_id: 'two' })
      expect(await minutes({ node_id: 'a' })).toMatchObject([{ opened: 12, ended: { new_instance: 6 } }])
      expect(await minutes({ node_id: 'node b' })).toMatchObject([{ opened: 6, ended: {} }])
      expect(await minutes({ node_id: 'node' })).toMatchObject([{ opened: 0, ended: {} }])
      expect(await minutes()).toMatchObject([{ opened: 18, ended: { new_instance: 6 } }])
    })

    it('does not report minutes that were not counted, and counts lost connections when they are noticed', async () => {
      const { clock, a, minutes } = start()
      await a.connect({ ...client, user_id: 'ann' })
      clock.advance(600_000)
      expect(await minutes()).toMatchObject([{ opened: 1, ended: {} }])
      await a.connect({ ...client, user_id: 'ann', client_id: 'phone' })
      const items = await minutes()
      expect(items).toMatchObject([
        { opened: 1, ended: {} },
        { opened: 1, ended: { heartbeat_lost: 1 } },
      ])
      expect(items?.map(({ minute }) => minute.slice(11, 16))).toEqual(['03:04', '03:14'])
    })

    it('accepts connections whatever the counters contain, and reports invalid ones', async () => {
      const heard: unknown[] = []
      const clock = createClock()
      const where = { ...place(), now: clock.now, onError: (error: unknown) => heard.push(error) }
      const registry = createRedisConnectionRegistry(where)
      const store = createStore(where)
      const key = store.key(
        await store.shardOf('ann'),
        'connections',
        'churn',
        String(Math.floor(clock.now() / 60_000)),
      )
      planted.add(key)
      await store.command(['SET', key, 'x'], key)
      const { connection_id } = await registry.connect({ ...client, user_id: 'ann' })
      expect(await registry.disconnect(connection_id)).toBe(true)
      expect(await registry.inspector.connectionChurn?.({}, ASK)).toMatchObject({ items: [] })
      expect(heard).toHaveLength(1)
      await store.command(['DEL', key], key)
      await store.command(
        ['ZADD', key, '7', 'opened toaster', '1e300', 'opened web', '-4', 'ended x web', '2', ''],
        key,
      )
      expect(await registry.inspector.connectionChurn?.({}, ASK)).toMatchObject({
        items: [{ opened: 0, ended: { x: 0 } }],
      })
    })

    it('counts minutes without changes because of the loop of a node', async () => {
      const { clock, where, a, minutes } = start()
      await a.connect({ ...client, user_id: 'ann' })
      clock.advance(60_000)
      const node = createRedisFacilities(where)
      await node.dispatcher.dispatch({ user_id: 'ann', client_id: 'c', command_id: 'k', action: 'a' })
      await soon(async () => {
        await node.dispatcher.reconcile()
        expect(await minutes()).toMatchObject([{ opened: 1 }, { opened: 0, ended: {} }])
      })
      await node.close()
    })
  })
})
