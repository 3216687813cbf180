/** A write of the tables of presence that arrives again, or late, has one effect: over a link that loses replies. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CONNECT, createRedisConnectionRegistry, DISCONNECT, HEARTBEAT } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { LIMIT_CLAIM } from '../../src/redis/presence/records.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { createStore } from '../../src/redis/store/store.js'
import { CHANGE_ROW } from '../../src/redis/table/records.js'
import { createClock } from '../contract/clock.js'
import { type Matcher, runsOf } from './lossy-plan.js'
import { type LossyStore, startLossyStore } from './lossy-store.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

const ctx = { signal: new AbortController().signal }
const client = { user_id: 'ann', client_id: 'c', client_type: 'web' } as const

describeRedis('presence over a connection that loses replies', () => {
  let server: Server
  let lossy: LossyStore
  let direct: Connected
  let deployments = 0
  beforeAll(async () => {
    server = await startServer()
    lossy = await startLossyStore(server.port)
    direct = await clients.ioredis([server.port])
  })
  afterAll(async () => {
    await direct.close()
    await lossy.close()
    await server.stop()
  })

  describe.each(['node-redis', 'ioredis'] as const)('and %s', (kind) => {
    let connected: Connected
    beforeAll(async () => {
      connected = await clients[kind]([lossy.port])
    })
    afterAll(() => connected.close())

    function place(shards = 1) {
      const deploymentId = `again-${kind}-${++deployments}`
      return {
        far: { client: connected.client, deploymentId, shards },
        near: { client: direct.client, deploymentId, shards },
      }
    }

    /** Has `script` run before, so that the next run is met by its digest. */
    const meet = async (script: Parameters<typeof runsOf>[0], fault: 'repeated' | 'late') => {
      const matches: Matcher = await runsOf(script)
      return lossy.plan.meet(fault, (args) => args[0] === 'EVALSHA' && matches(args))
    }

    it('connects once, and returns the same record, however often that arrives', async () => {
      const { far } = place()
      const registry = createRedisConnectionRegistry(far)
      await registry.connect({ ...client, client_id: 'first', instance_id: 'i' })
      const happened = meet(CONNECT, 'repeated')
      const { connection_id } = await registry.connect({ ...client, instance_id: 'new', actions: ['open'] })
      await happened
      const page = await registry.inspector.listConnections({ client_id: 'c' }, { limit: 10, cursor: null }, ctx)
      expect(page.items.map((item) => [item.connection_id, item.status])).toEqual([[connection_id, 'connected']])
    })

    it('never overwrites a newer instance with a connect that arrives late', async () => {
      const { far, near } = place()
      const registry = createRedisConnectionRegistry(far)
      const newer = createRedisConnectionRegistry(near)
      await registry.connect({ ...client, client_id: 'first', instance_id: 'i' })
      const happened = meet(CONNECT, 'repeated')
      const older = await registry.connect({ ...client, instance_id: 'old' })
      await happened
      // The client's command is sent once more after the newer instance has connected.
      const again = [...lossy.plan.seen].reverse().find((args) => args.includes(older.connection_id)) as string[]
      await newer.connect({ ...client, instance_id: 'new' })
      await createStore(near).command([...again], createStore(near).key(0))
      expect(await newer.currentInstance(client)).toBe('new')
    })

    it('disconnects once, and returns true however often that arrives', async () => {
      const { far } = place(4)
      const registry = createRedisConnectionRegistry(far)
      const first = await registry.connect({ ...client, client_id: 'first', instance_id: 'i' })
      const second = await registry.connect({ ...client, instance_id: 'i' })
      expect(await registry.disconnect(first.connection_id, 'gone')).toBe(true)
      const happened = meet(DISCONNECT, 'repeated')
      expect(await registry.disconnect(second.connection_id, 'gone')).toBe(true)
      await happened
      expect(await registry.disconnect(second.connection_id, 'gone')).toBe(false)
    })

    it('releases a task once, so that a task assigned in between stays', async () => {
      const { far, near } = place()
      const [contexts, others] = [createRedisContextRegistry(far), createRedisContextRegistry(near)]
      await contexts.report({ ...client, context_id: 'ctx', status: 'idle', ownership: 'worker' })
      await contexts.assignTask('ctx', 'task-1')
      await contexts.releaseTask('ctx')
      const sent = async (script: typeof CHANGE_ROW) => {
        const matches = await runsOf(script)
        return [...([...lossy.plan.seen].reverse().find(matches) as string[])]
      }
      const [assign, release] = [await sent(CHANGE_ROW), await sent(CHANGE_ROW)]
      const store = createStore(near)
      await store.command(assign, store.key(0))
      expect(await others.inspector.getContext('ctx', ctx)).toMatchObject({ task_id: null })
      await others.assignTask('ctx', 'task-2')
      await store.command(release, store.key(0))
      expect(await others.inspector.getContext('ctx', ctx)).toMatchObject({ task_id: 'task-2' })
    })

    it('closes once, and keeps the later of two reports of one node, whichever arrives last', async () => {
      const { far, near } = place()
      const contexts = createRedisContextRegistry(far)
      await contexts.report({ ...client, context_id: 'ctx', status: 'idle' })
      const matches = await runsOf(CHANGE_ROW)
      const early = [...lossy.plan.seen].reverse().find(matches) as string[]
      await contexts.report({ ...client, context_id: 'ctx', status: 'active' })
      await createStore(near).command([...early], createStore(near).key(0))
      expect(await contexts.inspector.getContext('ctx', ctx)).toMatchObject({ status: 'active' })
      await contexts.close('none')
      const happened = meet(CHANGE_ROW, 'repeated')
      expect(await contexts.close('ctx')).toBe(true)
      await happened
      expect(await contexts.close('ctx')).toBe(false)
    })

    it('keeps an id that was reported again when an earlier close arrives late', async () => {
      const { far, near } = place(4)
      const clock = createClock()
      const contexts = createRedisContextRegistry({ ...far, now: clock.now, ttlMs: 30_000 })
      const context = { ...client, context_id: 'ctx', status: 'idle' } as const
      await contexts.report(context)
      await contexts.close('ctx')
      const matches = await runsOf(LIMIT_CLAIM)
      const early = [...lossy.plan.seen].reverse().find(matches) as string[]
      clock.advance(10_000)
      await contexts.report(context)
      const store = createStore(near)
      await store.command([...early], store.key(shardOf('ctx', 4)))
      clock.advance(20_000)
      const others = { ...context, user_id: 'bob' }
      expect(shardOf('bob', 4)).not.toBe(shardOf('ann', 4))
      await expect(contexts.report(others)).rejects.toMatchObject({ code: 'identity_conflict' })
    })

    it('keeps later data of a connection when earlier calls arrive late', async () => {
      const { far, near } = place()
      const registry = createRedisConnectionRegistry(far)
      const { connection_id } = await registry.connect({ ...client, instance_id: 'i' })
      await registry.heartbeat(connection_id, { room: 'hall' })
      const matches = await runsOf(HEARTBEAT)
      const early = [...lossy.plan.seen].reverse().find(matches) as string[]
      await registry.heartbeat(connection_id, { room: 'yard' })
      await createStore(near).command([...early], createStore(near).key(0))
      expect(await registry.inspector.getConnection(connection_id, ctx)).toMatchObject({ metadata: { room: 'yard' } })
    })

    it('queries one shard for a known connection, and every shard once for another', async () => {
      const { far, near } = place(16)
      const registry = createRedisConnectionRegistry(far)
      const { connection_id } = await registry.connect({ ...client, instance_id: 'i' })
      const beats = await runsOf(HEARTBEAT)
      // A shard without writes gets the number of shards first.
      expect(await registry.heartbeat('none')).toBe(false)
      const count = async (id: string, by = registry) => {
        lossy.plan.forget()
        expect(await by.heartbeat(id)).toBe(true)
        return lossy.plan.seen.filter((args) => args[0] === 'EVALSHA' && beats(args)).length
      }
      expect(await count(connection_id)).toBe(1)
      const other = await createRedisConnectionRegistry(near).connect({ ...client, client_id: 'd', instance_id: 'i' })
      expect(await count(other.connection_id)).toBe(16)
      expect(await count(other.connection_id)).toBe(1)
    })
  })
})
