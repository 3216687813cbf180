/** A store that has lost its data is given back its number of shards, and two numbers never live side by side unnoticed. */
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

const WRITE = defineScript(
  'test.write',
  { args: [], answer: (reply) => reply },
  `redis.call('SET', K('made'), '1') return 1`,
)

afterEach(() => void vi.restoreAllMocks())

describeStores('the number of shards', (_kind, place, servers) => {
  const flush = () => Promise.all(servers().map((server) => server.cli('FLUSHALL')))

  it('is restored by the first write after the store has lost its data, in every shard', async () => {
    const store = createStore({ ...place(), shards: 5 })
    const number = (shard: number) => store.command(['GET', store.key(shard, 'shards')], store.key(shard))
    for (let shard = 0; shard < 5; shard++) await runScript(store, WRITE, shard, {})
    await flush()
    expect(await runScript(store, WRITE, 3, {})).toBe(1)
    expect([await number(0), await number(3)]).toEqual(['5', '5'])
  })

  it('keeps a half with another number out, wherever that begins, and tells both', async () => {
    const where = place()
    const told: unknown[] = []
    const old = createStore({ ...where, shards: 5, onError: (error) => told.push(error) })
    for (let shard = 0; shard < 5; shard++) await runScript(old, WRITE, shard, {})
    await flush()
    const other = createStore({ ...where, shards: 8, onError: (error) => told.push(error) })
    expect(await runScript(other, WRITE, 7, {})).toBe(1)
    for (const shard of [0, 1, 4])
      await expect(runScript(old, WRITE, shard, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
    expect(told.map(String)).toEqual(
      Array(3).fill('Refusal: unavailable: shard 0 belongs to 8 shards, not to the 5 of this process: see `shards`'),
    )
  })

  it('keeps it out where only the shard that says the number was lost', async () => {
    const where = place()
    const old = createStore({ ...where, shards: 5 })
    for (let shard = 0; shard < 5; shard++) await runScript(old, WRITE, shard, {})
    await old.command(['DEL', old.key(0, 'shards')], old.key(0))
    const other = createStore({ ...where, shards: 8 })
    await runScript(other, WRITE, 0, {})
    await expect(runScript(other, WRITE, 3, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
    await expect(runScript(old, WRITE, 0, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_run' })
  })

  it('is read anew by a reader within seconds, beside its work', async () => {
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

  it('is restored by the loop of a node that nobody asks anything, before one with another number comes', async () => {
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

  it('is told to a node that nobody asks anything, where another number has come first', async () => {
    const where = place()
    const told: unknown[] = []
    const idle = createRedisFacilities({ ...where, shards: 5, onError: (error) => told.push(error) })
    onTestFinished(async () => void (await idle.close()))
    await idle.dispatcher.reconcile()
    const other = createStore({ ...where, shards: 8 })
    for (let shard = 0; shard < 5; shard++)
      await other.command(['SET', other.key(shard, 'shards'), '8'], other.key(shard))
    await soon(() =>
      expect(told.map(String)).toContain(
        'Refusal: unavailable: shard 0 belongs to 8 shards, not to the 5 of this process: see `shards`',
      ),
    )
    expect(await other.shards()).toBe(8)
  })

  it('is refused while it is no number, and as before once that is gone', async () => {
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
