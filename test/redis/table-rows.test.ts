/** The rows of a table in a shard, tested with the functions that all scripts share. */
import { expect, it } from 'vitest'
import { ignoreReply, parseFlag } from '../../src/redis/store/reply.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import tablesLua from '../../src/redis/store/tables.lua'
import { createClock } from '../contract/clock.js'
import { describeNode } from './dispatcher-node.js'

const KNOWS = defineScript(
  'test.knows',
  { args: ['id'], answer: parseFlag },
  `${tablesLua} return load('t', id) and 1 or 0`,
)
const PUT = defineScript(
  'test.put',
  { args: ['id', 'user', 'lives'], answer: ignoreReply },
  `${tablesLua} put('t', id, load('t', id), { user_id = user, ix = { { 'user_id', user } } }, '{}', now + lives)`,
)
const SWEEP = defineScript('test.sweep', { args: [], answer: ignoreReply }, `${tablesLua} sweep('t')`)
const DROP = defineScript('test.drop', { args: ['id'], answer: ignoreReply }, `${tablesLua} drop('t', id)`)

let shards = 0

describeNode('a table of a shard', ({ client }) => {
  function openTable() {
    const clock = createClock()
    const store = createStore({ client: client(), deploymentId: `rows${++shards}`, shards: 1, now: clock.now })
    const ask = (name: string, end: string[], ...rest: string[]) => {
      const key = store.key(0, 't', ...end)
      return store.command([name, key, ...rest], key)
    }
    return {
      clock,
      ask,
      knows: (id: string) => runScript(store, KNOWS, 0, { id }),
      put: (id: string, user: string, lives = 1_000) => runScript(store, PUT, 0, { id, user, lives }),
      sweep: () => runScript(store, SWEEP, 0, {}),
      drop: (id: string) => runScript(store, DROP, 0, { id }),
    }
  }

  it('reads only rows that a script wrote', async () => {
    const { ask, knows, put } = openTable()
    await put('x', 'ann')
    expect(await knows('x')).toBe(true)
    expect(await knows('none')).toBe(false)
    for (const state of ['junk', '', '7', 'true', 'null', '"text"', '[1]', '{}', '{"user_id":7}']) {
      await ask('SET', ['row', 'x'], `${state}\n{}`)
      expect([state, await knows('x')]).toEqual([state, false])
    }
    await ask('SET', ['row', 'x'], '{"user_id":"ann"}')
    expect(await knows('x')).toBe(false)
    await ask('DEL', ['row', 'x'])
    await ask('RPUSH', ['row', 'x'], '{"user_id":"ann"}\n{}')
    expect(await knows('x')).toBe(false)
  })

  it('deletes expired rows, a limited number at a time, and nothing else', async () => {
    const { ask, clock, put, sweep } = openTable()
    for (let n = 0; n < 20; n++) await put(`x${n}`, 'ann')
    await put('later', 'ann', 1_001)
    await sweep()
    expect(await ask('ZCARD', ['all'])).toBe(21)
    clock.advance(1_000)
    await sweep()
    expect(await ask('ZCARD', ['all'])).toBe(5)
    await sweep()
    await sweep()
    expect(await ask('ZRANGE', ['all'], '0', '-1')).toEqual(['later'])
    expect(await ask('EXISTS', ['row', 'x0'])).toBe(0)
  })

  it('lists its users as long as they have a row', async () => {
    const { ask, put, drop } = openTable()
    for (const [id, user] of [
      ['x', 'ann'],
      ['y', 'ann'],
      ['z', 'bob'],
    ] as const)
      await put(id, user)
    const users = () => ask('ZRANGE', ['users'], '0', '-1')
    await drop('x')
    expect(await users()).toEqual(['ann', 'bob'])
    await drop('y')
    expect(await users()).toEqual(['bob'])
  })
})
