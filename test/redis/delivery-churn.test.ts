/** Per-minute counts of a dispatcher, written by each node and read together. */
import { expect, it } from 'vitest'
import { createChurnWriter, readDeliveryChurn } from '../../src/redis/delivery/churn.js'
import { ASK, createClock } from '../contract/clock.js'
import { openShard } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'

describeNode('the minutes of several nodes', ({ client }) => {
  function open() {
    const { ask, clock, store } = openShard(client())
    const minute = () => ['churn', String(Math.floor(clock.now() / 60_000))]
    const writer = (nodeId: string) => {
      const { at, count, publish } = createChurnWriter(store, nodeId)
      return async (admitted: number, resulted = 0) => {
        at(clock.now())
        if (admitted > 0) count('other', 'admitted', admitted)
        if (resulted > 0) count('outcome', 'resulted', resulted)
        count('other', 'attempt_handed_over', 1)
        await publish({ isForced: true })
      }
    }
    const read = async (node_id?: string) => {
      const { items } = await readDeliveryChurn(store, node_id === undefined ? {} : { node_id }, ASK)
      return items.map(({ minute, admitted, ended }) => [minute.slice(14, 16), admitted, ended.resulted])
    }
    return { ask, clock, minute, writer, read, store }
  }

  it('are added up over nodes and restarts, and can be read for one node', async () => {
    const { writer, read } = open()
    const [a, b] = [writer('a'), writer('b')]
    await a(2, 1)
    await b(1)
    await a(1)
    await writer('a')(4)
    expect(await read()).toEqual([['04', 8, 1]])
    expect(await read('a')).toEqual([['04', 7, 1]])
    expect(await read('b')).toEqual([['04', 1, 0]])
  })

  it('are missing if no node wrote counts, for all nodes and for one', async () => {
    const { clock, writer, read } = open()
    const [a, b] = [writer('a'), writer('b')]
    await a(1)
    clock.advance(180_000)
    await b(0)
    expect(await read()).toEqual([
      ['04', 1, 0],
      ['07', 0, 0],
    ])
    expect(await read('b')).toEqual([['07', 0, 0]])
  })

  it('are missing if there were too many counts to add up', async () => {
    const { ask, minute, writer, read } = open()
    await writer('a')(1)
    const others = Array.from({ length: 2_000 }, (_, i) => ['1', `admitted life n${i}`]).flat()
    await ask('ZADD', minute(), ...others)
    await writer('b')(1)
    expect(await read()).toEqual([])
    expect(await read('a')).toEqual([['04', 1, 0]])
  })

  it('are left out if another application overwrote their key', async () => {
    const { ask, clock, minute, writer, read } = open()
    const a = writer('a')
    await a(1)
    await ask('DEL', minute())
    await ask('SET', minute(), 'x')
    await a(1)
    clock.advance(60_000)
    await a(3)
    expect(await read()).toEqual([['05', 3, 0]])
  })
})

describeNode('the open commands of a minute', ({ make, observe }) => {
  it('are those at its end, and in the running minute those of now', async () => {
    const clock = createClock()
    const place = { deploymentId: 'open-minutes', now: clock.now }
    const observer = observe(place.deploymentId, { now: clock.now })
    const open = async () =>
      (await observer.deliveryChurn?.({}, ASK))?.items.map(({ minute, open }) => [minute.slice(14, 16), open?.waiting])
    let admitted = 0
    /** A node counts when it closes. */
    const live = async (more: number) => {
      const { dispatcher } = make(place)
      for (let i = 0; i < more; i++)
        await dispatcher.dispatch({
          user_id: 'ann',
          client_id: 'tab',
          command_id: `k${admitted++}`,
          action: 'go',
          deadline_ms: 600_000,
        })
      if (more === 0) await dispatcher.settle({ user_id: 'ann', client_id: 'tab', command_id: 'k0', state: 'resulted' })
      await dispatcher.close()
    }
    await live(1)
    clock.advance(10_000)
    await live(4)
    expect(await open()).toEqual([['04', 5]])
    clock.advance(10_000)
    await live(0)
    expect(await open()).toEqual([['04', 4]])
    // Too soon to count again: what the minute had last.
    clock.advance(60_000)
    await live(2)
    expect(await open()).toEqual([
      ['04', 4],
      ['05', 6],
    ])
  })
})
