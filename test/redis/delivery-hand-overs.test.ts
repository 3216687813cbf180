/** That a command was handed over travels with the next word about it, and is said by itself where none comes. */
import { describe, expect, it, vi } from 'vitest'
import { createHandOvers } from '../../src/redis/delivery/hand-overs.js'
import { END } from '../../src/redis/delivery/script-ends.js'
import { ADMIT, CLAIM, CONCLUDE } from '../../src/redis/delivery/scripts.js'
import { runScript } from '../../src/redis/store/script.js'
import { ASK, createClock } from '../contract/clock.js'
import { command, connection, first, key } from '../contract/delivery-commands.js'
import { ADMISSION, openShard, PLACE } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

describe('hand-overs of which the store has not been told', () => {
  it('are told after a moment, but for those that somebody has taken along', () => {
    vi.useFakeTimers()
    try {
      const handOvers = createHandOvers(5_000)
      const told: string[] = []
      const add = (ref: string, attempt: number) =>
        handOvers.add(ref, {
          attempt,
          endedAt: 0,
          shard: attempt,
          tell: async () => void told.push(`${ref} ${attempt}`),
        })
      add('a', 1)
      add('b', 1)
      // A former attempt is not forgotten.
      add('b', 2)
      expect(handOvers.take('a')?.attempt).toBe(1)
      expect(handOvers.take('a')).toBeUndefined()
      vi.advanceTimersByTime(99)
      expect(told).toEqual(['b 1'])
      vi.advanceTimersByTime(1)
      expect(told).toEqual(['b 1', 'b 2'])
      add('c', 1)
      add('d', 2)
      handOvers.tellAll(2)
      expect(told).toEqual(['b 1', 'b 2', 'd 2'])
      handOvers.tellAll()
      vi.advanceTimersByTime(1_000)
      expect(told).toEqual(['b 1', 'b 2', 'd 2', 'c 1'])
    } finally {
      vi.useRealTimers()
    }
  })

  it('wait for no more than a tenth of the patience', () => {
    vi.useFakeTimers()
    try {
      const tell = vi.fn(async () => {})
      createHandOvers(50).add('a', { attempt: 1, endedAt: 0, shard: 0, tell })
      vi.advanceTimersByTime(5)
      expect(tell).toHaveBeenCalledOnce()
    } finally {
      vi.useRealTimers()
    }
  })
})

describeNode('a shard that is told of a hand-over with another word', ({ client }) => {
  const claimed = async () => {
    const shard = openShard(client())
    const node = shard.node('a')
    await node.attach('i1', 1)
    await node.admit('c1')
    await node.claim('i1', 1)
    return { ...shard, node, attempts: async () => (await node.status('c1'))?.attempts }
  }
  const told = { confirmed: 1, last_outcome: 'handed_over' }
  const untold = { confirmed: 0, last_outcome: null }

  it('records it with the acknowledgement, once', async () => {
    const { node, attempts } = await claimed()
    const counted = ['other attempt_handed_over', 'acknowledgement acknowledged'].sort()
    const acknowledged = await node.acknowledge('c1', 'i1', 'x', '', 1)
    expect([acknowledged.answer, acknowledged.counted.sort()]).toEqual([true, counted])
    expect(await attempts()).toMatchObject(told)
    expect((await node.acknowledge('c1', 'i1', 'y', '', 1)).counted).toEqual(['acknowledgement repeated'])
    expect(await attempts()).toMatchObject(told)
  })

  it('records it with an acknowledgement that is made again', async () => {
    const { node, attempts } = await claimed()
    await node.acknowledge('c1', 'i1', 'x')
    expect(await attempts()).toMatchObject(untold)
    await node.acknowledge('c1', 'i1', 'y', '', 1)
    expect(await attempts()).toMatchObject(told)
  })

  it('records it with the end', async () => {
    const { node, attempts } = await claimed()
    expect((await node.end('c1', 'resulted', 'x', '', 1)).answer).toBe(true)
    expect(await attempts()).toMatchObject(told)
  })

  it('records none of another attempt, nor with what does not count', async () => {
    const { node, attempts } = await claimed()
    expect((await node.acknowledge('c1', 'i0', 'x', '', 1)).answer).toBe(false)
    await node.acknowledge('c1', 'i1', 'y', '', 2)
    expect(await attempts()).toMatchObject(untold)
  })

  it('records it behind the end where it was before that, and what came after it does not', async () => {
    const { clock, node, attempts } = await claimed()
    clock.advance(50)
    await node.end('c1', 'cancelled', 'x')
    clock.advance(30)
    expect((await node.conclude('c1', 1, 'handed_over', 30)).counted).toEqual(['other late_outcome'])
    expect((await node.conclude('c1', 2, 'handed_over', 60)).counted).toEqual(['other late_outcome'])
    expect((await node.conclude('c1', 1, 'rejected', 60)).counted).toEqual(['other late_outcome'])
    expect(await attempts()).toMatchObject(untold)
    expect((await node.conclude('c1', 1, 'handed_over', 31)).counted).toEqual(['other attempt_handed_over'])
    expect((await node.conclude('c1', 1, 'handed_over', 31)).counted).toEqual([])
    expect(await attempts()).toMatchObject(told)
  })

  it('counts what a call says when all of it is so', async () => {
    const { node, ask } = await claimed()
    await ask('SET', ['held'], 'foreign')
    await expect(node.end('c1', 'resulted', 'x', '', 1)).rejects.toThrow('another type')
    await ask('DEL', ['held'])
    expect((await node.end('c1', 'resulted', 'x', '', 1)).counted.sort()).toEqual([
      'other attempt_handed_over',
      'outcome resulted',
      expect.stringMatching(/^took /),
    ])
  })

  it('tells no node of a command that its claim has taken, and of one that came behind it', async () => {
    const { node, store } = await claimed()
    await node.end('c1', 'resulted', 'x')
    const taken = await node.admit('c2', { next_claim: '2 i1' })
    expect(taken.claimed).toMatchObject({ command_id: 'c2' })
    expect(taken.notices).toEqual([])
    await node.end('c2', 'resulted', 'y')
    const bounds = { incarnation: 'a', node: 'a', retention_ms: 1_000, max_kept: 10, patience_ms: 1_000 }
    const { notices, claims } = await runScript(store, ADMIT, 0, {
      ...{ ...bounds, max_tracked: 10, max_per_user: 10 },
      given: [ADMIT.callOf({ ...ADMISSION, id: 'c3', next_claim: '3 i1' }), ADMIT.callOf({ ...ADMISSION, id: 'c4' })],
    })
    expect(claims.get(1)).toMatchObject({ command_id: 'c3', behind: 0 })
    expect(notices).toEqual([`call\n${PLACE}`])
  })
})

describeNode('a node that has handed a command over', ({ client, make, observe }) => {
  const LONG = { deadline_ms: 600_000 }
  function open(options: Parameters<typeof make>[0] = {}) {
    const { client: lossy, plan } = lossyClient(client())
    const patient = { commandTimeoutMs: 2_000, ackTimeoutMs: 600_000, onError: null }
    const made = make({ client: lossy, ...patient, ...options })
    const status = async () => observe(made.deploymentId, options.now && { now: options.now }).status(key('c1'), ASK)
    const isTold = () =>
      soon(async () => expect((await status())?.attempts).toMatchObject({ confirmed: 1, last_outcome: 'handed_over' }))
    return { ...made, plan, status, isTold }
  }
  const handOver = async (
    { dispatcher, plan }: Pick<ReturnType<typeof open>, 'dispatcher' | 'plan'>,
    deliver?: Parameters<typeof connection>[0],
  ) => {
    const tab = connection(deliver)
    await dispatcher.attach(first, tab.deliver)
    // It has found its mailbox empty: a pass behind the answer. Where others waited, their claim would travel with the outcome.
    const isClaim = await runsOf(CLAIM)
    await soon(() => expect(plan.seen.filter(isClaim)).not.toEqual([]))
    await dispatcher.reconcile()
    await dispatcher.dispatch(command('c1', LONG))
    await tab.got(1)
    // Its node has heard by then that it was handed over.
    await new Promise((resolve) => setImmediate(resolve))
  }

  it('says so by itself where nobody says anything of it', async () => {
    const node = open()
    await handOver(node)
    await node.isTold()
    expect(node.plan.seen.filter(await runsOf(CONCLUDE))).not.toEqual([])
  })

  it('says so by itself where the word with which it travelled does not count', async () => {
    const node = open()
    await handOver(node)
    expect(await node.dispatcher.settle({ ...key('c1'), instance_id: 'i0', state: 'resulted' })).toBe(false)
    await node.isTold()
  })

  it('says so by itself where that word was lost', async () => {
    const node = open()
    await handOver(node)
    const met = node.plan.meet('unsent', await runsOf(END))
    const settled = Promise.resolve(node.dispatcher.settle({ ...key('c1'), state: 'resulted' })).catch(() => {})
    await met
    await settled
    await node.isTold()
  })

  it('says so at its end', async () => {
    const node = open()
    await handOver(node)
    await node.dispatcher.close()
    expect((await node.status())?.attempts).toMatchObject({ confirmed: 1, last_outcome: 'handed_over' })
  })

  it('says so at once where it is at its end already, or much of the patience is over', async () => {
    for (const isClosing of [true, false]) {
      let letGo = () => {}
      const held = new Promise<void>((resolve) => {
        letGo = resolve
      })
      const node = open(isClosing ? {} : { ackTimeoutMs: 200 })
      await handOver(node, () => held)
      const isConclusion = await runsOf(CONCLUDE)
      const closing = isClosing && node.dispatcher.close()
      if (!isClosing) await new Promise((resolve) => setTimeout(resolve, 110))
      letGo()
      await closing
      await new Promise((resolve) => setImmediate(resolve))
      expect(node.plan.seen.filter(isConclusion)).not.toEqual([])
    }
  })

  it('says so before it looks for attempts whose patience is over', async () => {
    const clock = createClock()
    const isToldYet = async (node: ReturnType<typeof open>) => (await node.status())?.attempts.confirmed !== 0
    let node: ReturnType<typeof open>
    // Where a wake-up comes late, the node claims what may come next and tells of the hand-over with that, at once.
    do {
      node = open({ now: clock.now, ackTimeoutMs: 60_000 })
      await handOver(node)
    } while (await isToldYet(node))
    // By the clock of the store its patience is over, and nobody would know that it was handed over.
    clock.advance(60_000)
    await node.dispatcher.reconcile()
    expect(await node.status()).toMatchObject({ attempts: { confirmed: 1 }, recovery: { reason: null } })
    clock.advance(60_000)
    await node.dispatcher.reconcile()
    expect(await node.status()).toMatchObject({ attempts: { count: 1 }, recovery: { reason: 'ack_timeout' } })
  })
})
