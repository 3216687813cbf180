/** What a shard keeps of the nodes of a dispatcher: their leases, the word that is left for them, and their entries. */
import { expect, it } from 'vitest'
import { HEARTBEAT_MS } from '../../src/contract/delivery-rules.js'
import { BEAT } from '../../src/redis/delivery/script-nodes.js'
import { runScript } from '../../src/redis/store/script.js'
import { LEASE_MS, openShard, PLACE } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'

/** As many nodes as a deployment lists. */
const LISTED = 1_000

describeNode('a shard that has several nodes', ({ client }) => {
  it('tells the node of a waiter that another has taken its place, until that was heard', async () => {
    const { node } = openShard(client())
    const [a, b] = [node('a'), node('b')]
    await a.attach('i1', 1)
    await b.attach('i2', 2)
    const told = await a.take('0')
    expect(told.notices).toEqual([`replaced\n${PLACE}\ni1`])
    expect((await a.take('0')).notices).toEqual(told.notices)
    expect((await a.take(told.answer.heard)).notices).toEqual([])
    expect((await a.take('0')).notices).toEqual([])
  })

  it('names a mailbox again that is not empty, and no more once it is', async () => {
    const { ask, node } = openShard(client())
    const [a, b] = [node('a'), node('b')]
    await a.attach('i1', 1)
    await b.admit('c1')
    const named = async () => {
      // As if time had passed since it was named last.
      await ask('ZADD', ['todo', 'a'], 'XX', '0', PLACE)
      return (await a.take('0')).notices
    }
    expect(await named()).toEqual([`call\n${PLACE}`])
    expect(await named()).toEqual([`call\n${PLACE}`])
    expect((await a.take('0')).notices).toEqual([])
    await a.claim('i1', 1)
    expect(await named()).toEqual([])
  })

  it('names a mailbox again in the next pass, where what named it was lost', async () => {
    const { ask, node, store } = openShard(client())
    const [a, b] = [node('a'), node('b')]
    await a.attach('i1', 1)
    await b.admit('c1')
    /** In how many ms it is named again, by the clock of the store. */
    const again = async () => {
      const at = Number(await ask('ZSCORE', ['todo', 'a'], PLACE))
      const [seconds, micros] = [await store.command(['TIME'], store.key(0))].flat().map(Number) as [number, number]
      return at - seconds * 1_000 - micros / 1_000
    }
    await a.take('0')
    expect(await again()).toBeLessThanOrEqual(HEARTBEAT_MS / 2)
    // What a node has put there itself it reads in the reply.
    expect((await a.admit('c2')).notices).toEqual([`call\n${PLACE}`])
    expect(await again()).toBeLessThanOrEqual(HEARTBEAT_MS / 2)
  })

  it('leaves no word for a node whose lease is over, and tells that one so when it comes back', async () => {
    const { ask, clock, node } = openShard(client())
    const [a, b] = [node('a'), node('b')]
    const isLapsed = async () => (await a.reconcile()).answer.isLapsed
    expect(await isLapsed()).toBe(true)
    await a.attach('i1', 1)
    clock.advance(LEASE_MS - 1)
    expect(await isLapsed()).toBe(false)
    clock.advance(LEASE_MS)
    await b.attach('i2', 2)
    expect(await ask('EXISTS', ['news', 'a'])).toBe(0)
    expect(await isLapsed()).toBe(true)
    expect(await isLapsed()).toBe(false)
    expect((await a.take('0')).notices).toEqual([])
  })

  it('numbers on where its numbers have gone ahead of its clock', async () => {
    const { ask, node } = openShard(client())
    const a = node('a')
    const ahead = 9_000_000_000_000_000
    await ask('SET', ['seq'], String(ahead))
    expect([(await a.order()).answer, (await a.order()).answer]).toEqual([`${ahead + 1}`, `${ahead + 2}`])
  })

  it('lists so many nodes, and of more those that spoke last', async () => {
    const { clock, store } = openShard(client())
    const beat = (id: string) => runScript(store, BEAT, 0, { id, kept_ms: 3_600_000, record: '{}' })
    await beat('first')
    clock.advance(1)
    await Promise.all(Array.from({ length: LISTED - 1 }, (_, i) => beat(`n${i}`)))
    const all = store.key(0, 'nodes', 'all')
    const listed = async () => (await store.command(['ZRANGE', all, '0', '-1'], all)) as string[]
    expect(await listed()).toHaveLength(LISTED)
    clock.advance(1)
    await beat('last')
    expect(await listed()).toHaveLength(LISTED)
    expect(await listed()).toContain('last')
    expect(await listed()).not.toContain('first')
  })
})
