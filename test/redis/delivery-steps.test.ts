/** The steps of the delivery protocol in one shard: called once, again, late, or by a node or instance that was replaced. */
import { expect, it } from 'vitest'
import { BEAT } from '../../src/redis/delivery/heartbeat.js'
import { runScript } from '../../src/redis/store/script.js'
import { LEASE_MS, MAILBOX, openShard, RETENTION_MS, refOf } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'

/** Maximum number of listed nodes. */
const LISTED = 1_000

describeNode('a shard of the dispatcher', ({ client }) => {
  /** Opens a shard with a node to which the client is attached, with `most` free slots. */
  async function waiting(most = 8, options: Parameters<typeof openShard>[1] = {}) {
    const shard = openShard(client(), options)
    const node = shard.node('a')
    await node.pass()
    await node.attach('i1', 1, most)
    return { ...shard, node, other: shard.node }
  }
  const attempts = async (node: { status(id: string): Promise<unknown> }, id: string) =>
    ((await node.status(id)) as { attempts: unknown } | null)?.attempts

  it('gives a command to the attached client with its admission, as long as that has free slots', async () => {
    const { node, ask, givenIn } = await waiting(2)
    expect([await node.admit('c1'), await node.admit('c2'), await node.admit('c3')].map(([kind]) => kind)).toEqual([
      'given',
      'given',
      'admitted',
    ])
    expect(await ask('LRANGE', ['queue', 'ada', 'tab'], '0', '-1')).toEqual([refOf('c3')])
    expect(await node.status('c3')).toMatchObject({ attempts: { count: 0 } })
    expect(await node.conclude('c1', 1, 'handed_over')).toBe('1')
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c3'), delivery: '1', attempt: '1' }])
    expect(await ask('EXISTS', ['queue', 'ada', 'tab'])).toBe(0)
  })

  it('gives commands from the queue before those that are admitted later', async () => {
    const { node, givenIn } = await waiting(1)
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    await node.say('c1', 'k', { instance: 'i1' })
    await node.admit('c4')
    expect(givenIn(node.told()).map(({ ref }) => ref)).toEqual([refOf('c2')])
    for (const id of ['c2', 'c3']) await node.say(id, 'r')
    expect(givenIn(node.told()).map(({ ref }) => ref)).toEqual([refOf('c3'), refOf('c4')])
  })

  it('sends a command admitted at another node to the node of the client, again until that has read it', async () => {
    const { node, givenIn, other } = await waiting()
    const b = other('b')
    expect((await b.admit('c1'))[0]).toBe('admitted')
    const first = await node.pass('', '0-0')
    expect(givenIn(first.messages)).toEqual([{ ref: refOf('c1'), delivery: '1', attempt: '1' }])
    expect(givenIn((await node.pass('', '0-0')).messages)).toHaveLength(1)
    expect((await node.pass()).messages).toEqual([])
  })

  it('keeps the trace of a command in its record, and in the messages to its node', async () => {
    const { node, ask, other } = await waiting()
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await other('b').admit('c1', { trace })
    const given = ({ messages }: { messages: string[] }) => messages.map((message) => message.split('\t').slice(6))
    expect(given(await node.pass('', '0-0'))).toEqual([['refresh', trace, '1']])
    await node.conclude('c1', 1, 'rejected')
    await node.retry('c1', 1)
    expect(given({ messages: node.told() })).toEqual([['refresh', trace, '1']])
    await node.say('c1', 'r')
    expect(await node.status('c1')).toMatchObject({ trace, terminal: { state: 'resulted' } })
    const record = await node.run('look_up', { ref: refOf('c1') })
    const copied = async (to: string) => {
      await ask('SET', ['command', 'ada', 'tab', 'c2'], record.replace(trace, to))
      return node.status('c2')
    }
    const changed = trace.replace('4b', '5b')
    expect(await copied(changed)).toMatchObject({ trace: changed })
    expect(await copied('x')).toBeNull()
  })

  it('admits a command that requires the current instance only if that is attached', async () => {
    const { node } = await waiting()
    expect((await node.admit('c1', { required: 'current', current: 'i2' }))[0]).toBe('rejected')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
    expect((await node.admit('c2', { required: 'current', current: 'i1' }))[0]).toBe('given')
    expect((await node.admit('c3', { required: 'any' }))[0]).toBe('given')
  })

  it('returns the record for a repeated dispatch, and gives the command once', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    expect((await node.admit('c1'))[0]).toBe('known')
    expect(await node.admit('c1', { fingerprint: 'other' })).toEqual(['conflict'])
    expect(await attempts(node, 'c1')).toMatchObject({ count: 1 })
    expect(node.counters.other).toMatchObject({ admitted: 1, dispatch_repeated: 1, dispatch_conflict: 1 })
  })

  it('rejects a resent dispatch again, and admits a new dispatch of the same command', async () => {
    const { node } = await waiting()
    await node.admit('c1', { capacity: 1 })
    const rejected = await node.admit('c2', { capacity: 1, by: 'first' })
    expect(rejected[0]).toBe('rejected')
    await node.say('c1', 'r')
    expect(await node.admit('c2', { capacity: 1, by: 'first' })).toEqual(rejected)
    expect((await node.status('c2'))?.terminal).toMatchObject({ state: 'rejected', reason: 'capacity_exceeded' })
    expect((await node.admit('c2', { capacity: 1 }))[0]).toBe('given')
  })

  it('does not apply the outcome of a former attempt to a later one', async () => {
    const { node, givenIn } = await waiting()
    await node.admit('c1')
    expect(await node.conclude('c1', 1, 'deliver_timed_out')).toBe('pause')
    expect(await node.conclude('c1', 1, 'deliver_timed_out')).toBe('pause')
    for (const _ of [1, 2]) await node.retry('c1', 1)
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c1'), delivery: '2', attempt: '2' }])
    await node.conclude('c1', 1, 'handed_over')
    expect(node.counters.other).toMatchObject({ late_outcome: 1 })
    expect(await attempts(node, 'c1')).toMatchObject({ count: 2, confirmed: 0, last_outcome: null })
    await node.conclude('c1', 2, 'handed_over')
    expect(await attempts(node, 'c1')).toMatchObject({ count: 2, confirmed: 1, last_outcome: 'handed_over' })
    expect((await node.status('c1'))?.recovery).toMatchObject({ count: 1, reason: 'deliver_timed_out' })
  })

  it('fails a command when its last attempt fails', async () => {
    const { node } = await waiting()
    await node.admit('c1', { maxAttempts: 1 })
    expect(await node.conclude('c1', 1, 'rejected')).toBe('0')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'failed', reason: 'attempts_exhausted' })
    expect(node.told()).toEqual([`ended\tfailed\t${refOf('c1')}`])
  })

  it('does not count an attempt that was given back before it began', async () => {
    const { node, givenIn } = await waiting()
    await node.admit('c1')
    await node.detach(1)
    for (const _ of [1, 2]) await node.giveBack('c1', 1)
    expect(await node.status('c1')).toMatchObject({ attempts: { count: 0, last_at: null }, recovery: { count: 0 } })
    await node.attach('i2', 2)
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c1'), delivery: '2', attempt: '1' }])
  })

  it('frees the slot of an attempt that was given back or failed', async () => {
    const { node, givenIn } = await waiting(1)
    await node.admit('c1')
    await node.giveBack('c1', 1)
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c1'), delivery: '2', attempt: '1' }])
    await node.admit('c2')
    await node.conclude('c1', 2, 'rejected')
    expect(givenIn(node.told()).map(({ ref }) => ref)).toEqual([refOf('c2')])
  })

  it('returns the running attempts of a waiter to an attach, a detach and its replacement', async () => {
    const { node } = await waiting()
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    await node.conclude('c2', 1, 'handed_over')
    const given = `${refOf('c1')} 1,${refOf('c3')} 1`
    expect(await node.attach('i1', 1)).toEqual(['attached', given])
    expect(await node.fetch('c1', 1)).toMatch(/^command\tada:tab:c1\t1\t1\t\d+\t1\trefresh\t\t1$/)
    expect(await node.fetch('c2', 1)).toBe('0')
    await node.attach('i2', 2)
    expect(node.told()).toEqual([`replaced\t${MAILBOX}\t1\t${given}`])
    await node.admit('c4')
    expect(await node.detach(2)).toBe(`${refOf('c4')} 1`)
    expect(await node.detach(2)).toBe('')
  })

  it('ignores a late attach after a newer one, even if that has detached', async () => {
    const { node } = await waiting()
    await node.attach('i3', 3)
    expect(await node.attach('i2', 2)).toEqual(['late', 'i3'])
    await node.detach(1)
    expect((await node.admit('c1', { required: 'any' }))[0]).toBe('given')
    await node.detach(3)
    // The attach of that very order may arrive after its own detach.
    for (const order of [2, 3]) expect(await node.attach('i2', order)).toEqual(['late', ''])
    expect((await node.attach('i4', 4))[0]).toBe('attached')
    expect(node.counters.other).toMatchObject({ waiter_late: 3 })
  })

  it('numbers attaches after the last number if that is ahead of the clock', async () => {
    const { ask, node } = await waiting()
    const ahead = 9_000_000_000_000_000
    await ask('SET', ['order'], String(ahead))
    expect([await node.order(), await node.order()]).toEqual([`${ahead + 1}`, `${ahead + 2}`])
  })

  it('records a confirmed delivery with the next acknowledgement, once, and only for its attempt', async () => {
    const { node } = await waiting()
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    expect(await node.say('c1', 'k', { instance: 'i1', handed: '1' })).toBe('1')
    expect(await node.say('c1', 'k', { instance: 'i1', handed: '1' })).toBe('1')
    expect(await attempts(node, 'c1')).toMatchObject({ confirmed: 1, last_outcome: 'handed_over' })
    expect(await node.say('c2', 'r', { handed: '2' })).toBe('1')
    expect(await attempts(node, 'c2')).toMatchObject({ confirmed: 0, last_outcome: null })
    expect(await node.say('c3', 'k', { instance: 'i0', handed: '1' })).toBe('0')
    expect(await attempts(node, 'c3')).toMatchObject({ confirmed: 0 })
    expect(node.counters.other).toMatchObject({ attempt_handed_over: 1 })
    expect(node.counters.acknowledgement).toMatchObject({ acknowledged: 1, repeated: 1, fenced: 1 })
  })

  it('records a delivery that was confirmed before the end but reported after it', async () => {
    const { clock, node } = await waiting()
    await node.admit('c1')
    clock.advance(50)
    await node.say('c1', 'c')
    clock.advance(30)
    await node.conclude('c1', 1, 'handed_over', 30)
    await node.conclude('c1', 1, 'rejected', 60)
    expect(await attempts(node, 'c1')).toMatchObject({ confirmed: 0, last_outcome: null })
    await node.conclude('c1', 1, 'handed_over', 31)
    await node.conclude('c1', 1, 'handed_over', 31)
    expect(await attempts(node, 'c1')).toMatchObject({ confirmed: 1, last_outcome: 'handed_over' })
    expect(node.counters.other).toMatchObject({ late_outcome: 2, attempt_handed_over: 1 })
  })

  it('returns the same result for a resent settlement, and keeps the first end', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    const told = [`ended\tresulted\t${refOf('c1')}`]
    expect(await node.say('c1', 'r', { by: 'x' })).toBe('1')
    expect(node.told()).toEqual(told)
    expect(await node.say('c1', 'r', { by: 'x' })).toBe('1')
    expect(node.told()).toEqual(told)
    expect(await node.say('c1', 'c', { by: 'y' })).toBe('0')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'resulted' })
    expect(node.counters.outcome).toEqual({ resulted: 1 })
  })

  it('expires overdue commands in the next pass, removes them from the queue and frees their slots once', async () => {
    const { clock, node, ask } = await waiting(1, { maxPerUser: 3 })
    await node.admit('c1', { ttl: 500 })
    await node.admit('c2', { ttl: 500 })
    await node.admit('c3')
    clock.advance(749)
    await node.pass()
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'expired', reason: 'deadline_passed' })
    expect(await node.status('c3')).toMatchObject({ attempts: { count: 1 }, terminal: null })
    expect(await ask('EXISTS', ['queue', 'ada', 'tab'])).toBe(0)
    expect(await ask('HGET', ['held'], 'ada')).toBe('1')
    const answers = []
    for (const id of ['c4', 'c5', 'c6']) answers.push((await node.admit(id))[0])
    expect(answers).toEqual(['admitted', 'admitted', 'rejected'])
  })

  it('treats a command as unknown after its retention, before a pass has deleted it', async () => {
    const { clock, node } = await waiting()
    await node.admit('c1')
    await node.say('c1', 'r', { by: 'x' })
    clock.advance(RETENTION_MS - 1)
    expect((await node.admit('c1'))[0]).toBe('known')
    // The retention ends with a full second.
    clock.advance(1_000)
    expect(await node.status('c1')).toBeNull()
    expect(await node.say('c1', 'r', { by: 'x' })).toBe('0')
    expect((await node.admit('c1'))[0]).toBe('given')
    expect((await node.status('c1'))?.terminal).toBeNull()
  })

  it('deletes commands after their retention, even if another one of their chunk is still open', async () => {
    const { clock, node, ask } = await waiting(500)
    await node.admit('long', { ttl: 80_000_000 })
    for (let i = 0; i < 60; i++) {
      await node.admit(`c${i}`)
      await node.say(`c${i}`, 'r')
    }
    const left = async () => [await ask('LLEN', ['of', 'ada']), await ask('HMGET', ['counts'], 'a', 'r')]
    // Commands that end within a short time are deleted together.
    clock.advance(RETENTION_MS + RETENTION_MS / 64)
    await node.pass()
    expect(await left()).toEqual([1, ['1', '0']])
    expect((await node.status('long'))?.terminal).toBeNull()
    // Only the reference of the open command is left in the chunk.
    const log = (await ask('LRANGE', ['log', '0'], '0', '-1')) as string[]
    expect(log.filter((ref) => ref !== '')).toEqual([refOf('long')])
    await node.say('long', 'c')
    clock.advance(2 * RETENTION_MS)
    await node.pass()
    expect(await ask('EXISTS', ['log', '0'])).toBe(0)
    expect(await left()).toEqual([0, ['0', '0']])
    // The next command starts a new chunk.
    await node.admit('next')
    expect(await ask('GET', ['seq'])).toMatch(/^257 \d+$/)
  })

  it('keeps the newest ended and the newest rejected commands, up to the maximum of each', async () => {
    const { node } = await waiting(8, { maxRetained: 3 })
    await node.admit('open')
    for (let i = 0; i < 8; i++) {
      await node.admit(`c${i}`)
      await node.say(`c${i}`, 'f')
      await node.admit(`r${i}`, { required: 'current', current: 'absent' })
    }
    const kept = []
    for (const id of ['open', ...Array.from({ length: 8 }, (_, i) => [`c${i}`, `r${i}`]).flat()])
      if (await node.status(id)) kept.push(id)
    expect(kept).toEqual(['open', 'c5', 'r5', 'c6', 'r6', 'c7', 'r7'])
  })

  it('keeps a line for each of the last sixteen attempts, and totals of older ones', async () => {
    const { node, ask } = await waiting()
    await node.admit('c1', { maxAttempts: 100 })
    for (let delivery = 1; delivery <= 40; delivery++) {
      await node.conclude('c1', delivery, 'handed_over')
      await node.conclude('c1', delivery, 'ack_timeout')
      await node.retry('c1', delivery)
    }
    expect(await node.status('c1')).toMatchObject({
      attempts: { count: 41, confirmed: 40, last_outcome: null },
      recovery: { count: 40, reason: 'ack_timeout' },
    })
    expect(await ask('STRLEN', ['command', 'ada', 'tab', 'c1'])).toBeLessThan(3_000)
  })

  it('frees a reservation when all dispatches that share it have released it, or its command has ended', async () => {
    const { node, ask } = await waiting()
    const places = () => ask('HGET', ['scopes'], 'red')
    const [one, two] = [await node.reserve('red', 'c1', 900, 'one'), await node.reserve('red', 'c1', 5_000, 'two')]
    // Both dispatches get the deadline of the first.
    expect(two).toBe(one)
    expect(await node.reserve('red', 'c2', 900)).toBe('')
    for (const _ of [1, 2]) await node.release('red', 'c1', 'one')
    expect(await places()).toBe('1')
    await node.release('red', 'c1', '')
    expect(await places()).toBe('0')
    for (const dispatch of ['one', 'two']) await node.reserve('red', 'c1', 900, dispatch)
    for (const dispatch of ['one', 'two']) await node.release('red', 'c1', dispatch)
    expect(await places()).toBe('0')
  })

  it('frees an abandoned reservation at its deadline, and deletes its scope', async () => {
    const { clock, ask, node } = await waiting()
    await node.reserve('red', 'c1', 500)
    const kept = async () => [
      await ask('EXISTS', ['reserved', 'red']),
      await ask('ZCARD', ['scope-order']),
      await ask('HLEN', ['scopes']),
      await ask('HLEN', ['capacities']),
    ]
    clock.advance(499)
    await node.pass()
    expect(await kept()).toEqual([1, 1, 1, 1])
    // Another command can reserve at once, even before a pass.
    clock.advance(1)
    expect(await node.reserve('red', 'c2', 500)).not.toBe('')
    clock.advance(1_000)
    for (const _ of [1, 2]) await node.pass()
    expect(await kept()).toEqual([0, 0, 0, 0])
  })

  it('declares a node dead at the second look at its expired lease, and gives its commands to the client attached now', async () => {
    const { clock, node, ask, givenIn, other } = await waiting()
    const b = other('b')
    await b.pass()
    for (const id of ['c1', 'c2', 'c3', 'c4']) await node.admit(id)
    await node.conclude('c2', 1, 'handed_over')
    await node.say('c3', 'k', { instance: 'i1' })
    // It waits for its next attempt.
    await node.conclude('c4', 1, 'rejected')
    clock.advance(LEASE_MS)
    const { seen } = await b.pass()
    expect(seen).toMatch(/^a \d+,$/)
    await b.attach('i2', 2)
    expect(await ask('HGET', ['leases'], 'a')).not.toBe('dead')
    await b.pass(seen)
    for (const _ of [1, 2]) await b.pass()
    const { messages } = await b.pass('', '0-0')
    expect(givenIn(messages).map(({ ref, attempt }) => [ref, attempt])).toEqual([
      [refOf('c1'), '2'],
      [refOf('c2'), '2'],
      [refOf('c4'), '2'],
    ])
    expect(await b.status('c1')).toMatchObject({ recovery: { count: 1, reason: 'lease_expired' } })
    expect((await b.status('c3'))?.acknowledgement.state).toBe('acknowledged')
    expect(await ask('HEXISTS', ['leases'], 'a')).toBe(0)
    // The node's later reports about its attempts are ignored, and it must restart under a new incarnation.
    expect(await node.conclude('c1', 1, 'handed_over')).toBe('0')
    expect((await node.pass()).standing).toBe('restart')
  })

  it('declares no node dead because of a clock step', async () => {
    const { clock, node, ask, other } = await waiting()
    const b = other('b')
    await b.pass()
    clock.advance(3_600_000)
    const { seen } = await b.pass()
    expect((await node.pass()).standing).toBe('lapsed')
    await b.pass(seen)
    expect(await ask('HGET', ['leases'], 'a')).not.toBe('dead')
    expect((await node.pass()).standing).toBe('ok')
  })

  it('makes a node restart if the store lost a message that the node has not read', async () => {
    const { node, ask, other } = await waiting()
    const b = other('b')
    for (const id of ['c1', 'c2']) await b.admit(id)
    await node.pass()
    const last = (await ask('XREVRANGE', ['inbox', 'a'], '+', '-', 'COUNT', '1')) as [[string]]
    // As after a failover to a replica that lacks the last message and has received another one since.
    await ask('XDEL', ['inbox', 'a'], last[0][0])
    await ask('HSET', ['last-message'], 'a', '1-0')
    await b.admit('c3')
    expect((await node.pass()).standing).toBe('restart')
  })

  it('deletes a command at its deadline whose record was replaced by that of another command', async () => {
    const { clock, node, ask, key } = await waiting()
    await node.admit('c1', { ttl: 900 })
    await node.admit('c2')
    await ask('COPY', ['command', 'ada', 'tab', 'c2'], key('command', 'ada', 'tab', 'c1'), 'REPLACE')
    clock.advance(1_200)
    await node.pass()
    expect(await ask('HMGET', ['counts'], 'a', 'x')).toEqual(['1', null])
    expect(await ask('HGET', ['scopes'], 'ada')).toBe('1')
  })

  it('expires commands whose mailbox another application replaced by another type', async () => {
    const { clock, node, ask } = await waiting(1)
    for (const id of ['c1', 'c2']) await node.admit(id, { ttl: 900 })
    await ask('DEL', ['queue', 'ada', 'tab'])
    await ask('SET', ['queue', 'ada', 'tab'], 'foreign')
    clock.advance(1_200)
    await node.pass()
    expect((await node.status('c1'))?.terminal?.state).toBe('expired')
    expect((await node.status('c2'))?.terminal?.state).toBe('expired')
  })

  it('lists the nodes with the newest heartbeats, up to the maximum', async () => {
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
