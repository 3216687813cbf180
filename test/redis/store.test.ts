/** Commands, scripts, shards and time of a store, over every client. */
import { expect, it } from 'vitest'
import { ignoreReply, listOf } from '../../src/redis/store/reply.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { describeStores } from './matrix.js'

const signal = () => new AbortController().signal

describeStores('the store', (_kind, place) => {
  it('sends commands to every shard and reads what it wrote', async () => {
    const store = createStore({ ...place(), shards: 8 })
    const keys = Array.from({ length: 8 }, (_, shard) => store.key(shard, 'x', 'a:b}{*'))
    await Promise.all(keys.map((key, shard) => store.command(['SET', key, `v${shard}`, 'PX', '60000'], key)))
    const read = await Promise.all(keys.map((key) => store.command(['MGET', key, `${key}z`], key)))
    expect(read).toEqual(keys.map((_, shard) => [`v${shard}`, null]))
  })

  it('runs a script by digest, and by source if the store has not cached it', async () => {
    const store = createStore({ ...place(), now: () => 1_000 })
    const script = defineScript(
      'test.make',
      { args: ['id'], rest: 'more', answer: listOf },
      `write('SET', K('made', id), now) return { now, id, more }`,
    )
    const run = () => runScript(store, script, 0, { id: 'ünï:code', more: [1, 'b'] })
    for (let i = 0; i < 2; i++) expect(await run()).toEqual([1_000, 'ünï:code', ['1', 'b']])
    const key = store.key(0, 'made', 'ünï:code')
    expect(await store.command(['GET', key], key)).toBe('1000')
  })

  it('throws the refusal of a script', async () => {
    const store = createStore(place())
    const script = defineScript('test.refuse', { args: [], answer: ignoreReply }, `return refuse('identity_conflict')`)
    await expect(runScript(store, script, 0, {})).rejects.toMatchObject({ code: 'identity_conflict' })
  })

  it('reports an unreadable reply, and returns only that the store cannot serve the request', async () => {
    const errors: unknown[] = []
    const store = createStore({ ...place(), onError: (error) => errors.push(error) })
    const script = defineScript('test.spoilt', { args: [], answer: (reply) => JSON.parse(String(reply)) }, `return '{'`)
    await expect(runScript(store, script, 0, {})).rejects.toMatchObject({ code: 'unavailable', outcome: 'unknown' })
    expect(errors).toMatchObject([{ name: 'SyntaxError' }])
  })

  it('rejects another number of shards than the first writer claimed', async () => {
    const { client, deploymentId } = place()
    const options = { client, deploymentId }
    expect(await createStore(options).shards()).toBe(1)
    expect(await createStore({ ...options, shards: 3 }).claimShards()).toBe(3)
    expect(await createStore(options).shards()).toBe(3)
    await expect(createStore({ ...options, shards: 2, onError: null }).shards()).rejects.toMatchObject({
      code: 'unavailable',
    })
    await expect(createStore({ ...options, shards: 2, onError: null }).claimShards()).rejects.toMatchObject({
      code: 'unavailable',
    })
  })

  it('returns the time of the store', async () => {
    const store = createStore(place())
    expect(Math.abs((await store.time()) - Date.now())).toBeLessThan(5_000)
  })

  it('rejects with the reason of the signal', async () => {
    const store = createStore(place())
    const key = store.key(0, 'x')
    await expect(store.command(['GET', key], key, { signal: AbortSignal.abort('gone') })).rejects.toBe('gone')
    expect(await store.command(['GET', key], key, { signal: signal() })).toBe(null)
  })
})
