/** Which entry a shard evicts when users share a limit, tested with the functions of its scripts. */
import { expect, it } from 'vitest'
import fairShareLua from '../../src/redis/store/fair-share.lua'
import { ignoreReply, listOf } from '../../src/redis/store/reply.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { describeNode } from './dispatcher-node.js'

const HOLD = defineScript(
  'test.hold',
  { args: ['user', 'id', 'at', 'bytes'], answer: ignoreReply },
  `${fairShareLua}
hold('s', user, id, tonumber(at), tonumber(bytes))`,
)
/** Whose entry must go for `added` of `user` to stay, and which. */
const EXCESS = defineScript(
  'test.excess',
  { args: ['user', 'added', 'bounds'], answer: (reply) => listOf(reply).map(String) },
  `${fairShareLua}
return { excess('s', user, added, cjson.decode(bounds)) }`,
)

interface Bounds {
  entries?: number
  entries_per_user?: number
  bytes?: number
  bytes_per_user?: number
}

let shards = 0

describeNode('a shard that many share', ({ client, server }) => {
  function openShare() {
    const store = createStore({ client: client(), deploymentId: `share${++shards}`, shards: 1 })
    let at = 0
    return {
      key: (...parts: string[]) => store.key(0, 's', ...parts),
      hold: (user: string, id: string, bytes = 10) => runScript(store, HOLD, 0, { user, id, at: ++at, bytes }),
      excess: (user: string, added: string, bounds: Bounds) =>
        runScript(store, EXCESS, 0, { user, added, bounds: JSON.stringify(bounds) }),
    }
  }

  it('evicts the oldest entry of the user with the largest share, regardless of who added the new one', async () => {
    const { hold, excess } = openShare()
    for (const id of ['b1', 'b2', 'b3']) await hold('bob', id)
    for (const id of ['a1', 'a2']) await hold('ann', id)
    for (const bounds of [{ entries: 4 }, { bytes: 40 }])
      expect(await excess('ann', 'a2', bounds)).toEqual(['bob', 'b1'])
    for (const bounds of [{ entries: 5 }, { bytes: 50 }]) expect(await excess('ann', 'a2', bounds)).toEqual([])
  })

  it('does not count the same id of another user as the added entry', async () => {
    const { hold, excess } = openShare()
    for (const id of ['m1', 'm2']) await hold('bob', id)
    await hold('ann', 'm1')
    for (const bounds of [{ entries: 2 }, { bytes: 20 }])
      expect(await excess('ann', 'm1', bounds)).toEqual(['bob', 'm1'])
  })

  it('evicts the oldest entry of a user whose own share is full', async () => {
    const { hold, excess } = openShare()
    for (const id of ['b1', 'b2', 'b3']) await hold('bob', id)
    for (const id of ['a1', 'a2']) await hold('ann', id)
    for (const bounds of [{ entries_per_user: 1 }, { bytes_per_user: 15 }])
      expect(await excess('ann', 'a2', bounds)).toEqual(['ann', 'a1'])
  })

  it('never evicts the added entry, whatever the stored sums are', async () => {
    const { hold, excess, key } = openShare()
    await hold('ann', 'a1')
    await server().cli('ZINCRBY', key('bytes'), '1000000', 'ann')
    await server().cli('HINCRBY', key('held'), 'bytes', '1000000')
    expect(await excess('ann', 'a1', { bytes_per_user: 100 })).toEqual([])
    expect(await excess('ann', 'a1', { bytes: 100 })).toEqual([])
  })
})
