/** A store that has lost its data is given back its number of shards, and two numbers never live side by side unnoticed. */
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { StoreWarning } from '../../src/redis/store/warnings.js'
import { ASK } from '../contract/clock.js'
import { describeStores } from './matrix.js'
import { createObserver, get } from './router.js'
import { soon } from './wait-for.js'

const WRITE = defineScript(
  'test.write',
  { args: [], answer: (reply) => reply },
  `write('SET', K('made'), '1') return 1`,
)

const TAKEN =
  'Refusal: unavailable: the deployment has 8 shards (stored in shard 0), but this process uses 5: give all its processes the same `shards`'

afterEach(() => void vi.restoreAllMocks())

describeStores('the number of shards', (_kind, place, servers) => {
  const flush = () => Promise.all(servers().map((server) => server.cli('FLUSHALL')))

  /** Opens facilities that are closed after the test, and collects their errors. A Cluster warns about few shards. */
  function open(options: Parameters<typeof createRedisFacilities>[0]) {
    const told: unknown[] = []
    const facilities = createRedisFacilities({
      ...options,
      onError(error) {
        if (!(error instanceof StoreWarning)) told.push(error)
      },
    })
    onTestFinished(async () => void (await facilities.close()))
    return { ...facilities, told }
  }
  /** Options of a deployment without a configured number of shards. */
  const bare = () => {
    const { client, deploymentId } = place()
    return { client, deploymentId }
  }
  const client_type = 'console' as const
  // One in each of three shards.
  const ids = Array.from({ length: 50 }, (_, n) => `user-${n}`)
  const users = [0, 1, 2].map((shard) => ids.find((id) => shardOf(id, 3) === shard) as string)

  it('is not fixed by an idle node without the option before one with shards: 3 starts', async () => {
    const where = bare()
    const plain = open(where)
    await plain.dispatcher.reconcile()
    expect((await plain.dispatcher.inspector.listNodes({ limit: 9, cursor: null }, ASK)).items).toHaveLength(1)
    const sharded = open({ ...where, shards: 3 })
    await sharded.dispatcher.reconcile()
    for (const [i, user_id] of users.entries()) {
      const client = { user_id, client_id: 'laptop', instance_id: 'run-1' }
      const [here, there] = i % 2 === 0 ? [plain, sharded] : [sharded, plain]
      await here.connections.connect({ ...client, client_type })
      const received: string[] = []
      await here.dispatcher.attach(client, ({ command_id }) => void received.push(command_id))
      await there.dispatcher.dispatch({ user_id, client_id: 'laptop', command_id: 'sync', action: 'sync' })
      await soon(() => expect(received).toEqual(['sync']))
    }
    await plain.dispatcher.reconcile()
    expect(await createStore(where).shards()).toBe(3)
    const { body } = await get(createObserver(where), '/connections?limit=10')
    expect(body.items.map(({ user_id }: { user_id: string }) => user_id).sort()).toEqual([...users].sort())
    expect([plain.told, sharded.told]).toEqual([[], []])
  })

  it('is adopted by a node without the option that starts later', async () => {
    const where = bare()
    await open({ ...where, shards: 3 }).dispatcher.reconcile()
    const plain = open(where)
    for (const user_id of users)
      await plain.connections.connect({ user_id, client_id: 'laptop', instance_id: 'run-1', client_type })
    expect(await createStore(where).shards()).toBe(3)
    expect(plain.told).toEqual([])
  })

  it('is fixed by the first record: a node with another number is refused with the reason', async () => {
    const where = bare()
    await open(where).connections.connect({ user_id: 'a', client_id: 'laptop', instance_id: 'run-1', client_type })
    const sharded = open({ ...where, shards: 3 })
    await expect(
      sharded.connections.connect({ user_id: 'b', client_id: 'laptop', instance_id: 'run-1', client_type }),
    ).rejects.toMatchObject({
      code: 'unavailable',
      detail:
        'the deployment has 1 shard (stored in shard 0), but this process uses 3: give all its processes the same `shards`',
    })
  })

  it('is decided once if nodes with different numbers start at the same time', async () => {
    for (let round = 0; round < 10; round++) {
      const { client } = place()
      const deploymentId = `race-${crypto.randomUUID()}`
      const numbers = [undefined, 2, 3, 5].slice(round % 2)
      const nodes = numbers.map((shards) => ({ shards, ...open({ client, deploymentId, shards }) }))
      const starts = nodes.map(({ shards, dispatcher, connections }, i) => {
        const connect = () =>
          connections.connect({ user_id: `u${i}`, client_id: 'laptop', instance_id: 'run-1', client_type })
        return shards === undefined ? dispatcher.reconcile().then(connect) : connect()
      })
      const results = await Promise.allSettled(starts)
      const stored = await createStore({ client, deploymentId }).shards()
      const accepted = nodes.flatMap(({ shards }, i) => (results[i]?.status === 'fulfilled' ? [shards ?? stored] : []))
      expect(accepted).not.toEqual([])
      expect(new Set(accepted)).toEqual(new Set([stored]))
      for (const [i, { shards = stored, dispatcher }] of nodes.entries()) {
        const dispatching = dispatcher.dispatch({ user_id: `u${i}`, client_id: 'c', command_id: 'x', action: 'sync' })
        if (shards === stored) await dispatching
        else await expect(dispatching).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
      }
    }
  })

  it('is restored after data loss, whatever an idle node without the option has stored since', async () => {
    const where = bare()
    await createStore({ ...where, shards: 3 }).claimShards()
    const plain = createStore(where)
    await plain.claimShards()
    await flush()
    expect(await createStore(where).joinShards()).toBe(1)
    expect(await runScript(plain, WRITE, 2, {})).toBe(1)
    expect(await createStore(where).shards()).toBe(3)
  })

  it('is restored by the first write after the store has lost its data, in every shard', async () => {
    const store = createStore({ ...place(), shards: 5 })
    const number = (shard: number) => store.command(['GET', store.key(shard, 'shards')], store.key(shard))
    for (let shard = 0; shard < 5; shard++) await runScript(store, WRITE, shard, {})
    await flush()
    expect(await runScript(store, WRITE, 3, {})).toBe(1)
    expect([await number(0), await number(3)]).toEqual(['5', '5'])
  })

  it('rejects nodes with another number, whichever starts first, and reports it to both', async () => {
    const where = place()
    const told: unknown[] = []
    const old = createStore({ ...where, shards: 5, onError: (error) => told.push(error) })
    for (let shard = 0; shard < 5; shard++) await runScript(old, WRITE, shard, {})
    await flush()
    const other = createStore({ ...where, shards: 8, onError: (error) => told.push(error) })
    expect(await runScript(other, WRITE, 7, {})).toBe(1)
    for (const shard of [0, 1, 4])
      await expect(runScript(old, WRITE, shard, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
    expect(told.map(String)).toEqual(Array(3).fill(TAKEN))
  })

  it('rejects them even if only the shard with the number was lost', async () => {
    const where = place()
    const old = createStore({ ...where, shards: 5 })
    for (let shard = 0; shard < 5; shard++) await runScript(old, WRITE, shard, {})
    await old.command(['DEL', old.key(0, 'shards')], old.key(0))
    const other = createStore({ ...where, shards: 8 })
    await runScript(other, WRITE, 0, {})
    await expect(runScript(other, WRITE, 3, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
    await expect(runScript(old, WRITE, 0, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
  })

  it('is read again by a reader within seconds, in the background', async () => {
    const where = place()
    const { client, deploymentId } = where
    await createStore({ ...where, shards: 5 }).claimShards()
    const reader = createStore({ client, deploymentId })
    expect(await reader.shards()).toBe(5)
    await flush()
    await createStore({ ...where, shards: 8 }).claimShards()
    const real = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => real() + 10_000)
    expect(await reader.shards()).toBe(5)
    await expect.poll(() => reader.shards()).toBe(8)
  })

  it('is restored by the loop of an idle node, before one with another number starts', async () => {
    const where = place()
    const idle = createRedisFacilities({ ...where, shards: 5 })
    onTestFinished(async () => void (await idle.close()))
    await idle.dispatcher.reconcile()
    await flush()
    const { command, key } = createStore(where)
    const number = (shard: number) => command(['GET', key(shard, 'shards')], key(shard))
    await soon(async () => expect(await Promise.all([0, 1, 2, 3, 4].map(number))).toEqual(Array(5).fill('5')))
    const other = createStore({ ...where, shards: 8 })
    await expect(runScript(other, WRITE, 0, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
  })

  it('is reported to an idle node if another number was stored first', async () => {
    const where = place()
    const told: unknown[] = []
    const idle = createRedisFacilities({ ...where, shards: 5, onError: (error) => told.push(error) })
    onTestFinished(async () => void (await idle.close()))
    await idle.dispatcher.reconcile()
    const other = createStore({ ...where, shards: 8 })
    for (let shard = 0; shard < 5; shard++)
      await other.command(['SET', other.key(shard, 'shards'), '8', 'KEEPTTL'], other.key(shard))
    await soon(() => expect(told.map(String)).toContain(TAKEN))
    expect(await other.shards()).toBe(8)
  })

  it('is refused while it is invalid, and accepted once that is deleted', async () => {
    const store = createStore({ ...place(), shards: 5 })
    await runScript(store, WRITE, 0, {})
    for (const spoil of [
      ['SET', 'many'],
      ['SET', '0'],
      ['RPUSH', '5'],
    ]) {
      const [command, value] = spoil as [string, string]
      await store.command(['DEL', store.key(0, 'shards')], store.key(0))
      await store.command([command, store.key(0, 'shards'), value], store.key(0))
      await expect(runScript(store, WRITE, 0, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
    }
    await store.command(['DEL', store.key(0, 'shards')], store.key(0))
    expect(await runScript(store, WRITE, 0, {})).toBe(1)
  })
})
