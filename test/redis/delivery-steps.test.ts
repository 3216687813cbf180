/** The steps of the delivery protocol in one shard, said once, again, late, or by somebody who is not asked any more. */
import { expect, it } from 'vitest'
import { BEAT } from '../../src/redis/delivery/scripts.js'
import { runScript } from '../../src/redis/store/script.js'
import { LEASE_MS, MAILBOX, openShard, RETENTION_MS, refOf } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'

/** As many nodes as a deployment lists. */
const LISTED = 1_000

describeNode('a shard of the dispatcher', ({ client }) => {
  /** A node at which the client waits, with so many free places. */
  async function waiting(most = 8, options: Parameters<typeof openShard>[1] = {}) {
    const shard = openShard(client(), options)
    const node = shard.node('a')
    await node.pass()
    await node.attach('i1', 1, most)
    return { ...shard, node, other: shard.node }
  }
  const attempts = async (node: { status(id: string): Promise<unknown> }, id: string) =>
    ((await node.status(id)) as { attempts: unknown } | null)?.attempts

  it('gives a command to the waiter of its client with its admission, as many as it has free places', async () => {
    const { node, ask, givenIn } = await waiting(2)
    expect([await node.admit('c1'), await node.admit('c2'), await node.admit('c3')].map((answer) => answer[0])).toEqual(
      ['G', 'G', 'N'],
    )
    expect(await ask('LRANGE', ['box', 'ada', 'tab'], '0', '-1')).toEqual([refOf('c3')])
    expect(await node.status('c3')).toMatchObject({ attempts: { count: 0 } })
    expect(await node.conclude('c1', 1, 'handed_over')).toBe('1')
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c3'), delivery: '1', attempt: '1' }])
    expect(await ask('EXISTS', ['box', 'ada', 'tab'])).toBe(0)
  })

  it('gives what waits in a box before what is admitted later', async () => {
    const { node, givenIn } = await waiting(1)
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    await node.say('c1', 'k', { instance: 'i1' })
    await node.admit('c4')
    expect(givenIn(node.told()).map(({ ref }) => ref)).toEqual([refOf('c2')])
    for (const id of ['c2', 'c3']) await node.say(id, 'r')
    expect(givenIn(node.told()).map(({ ref }) => ref)).toEqual([refOf('c3'), refOf('c4')])
  })

  it('sends what is admitted elsewhere to the node of the waiter, which reads it until it says so', async () => {
    const { node, givenIn, other } = await waiting()
    const b = other('b')
    expect((await b.admit('c1'))[0]).toBe('N')
    const first = await node.pass('', '0-0')
    expect(givenIn(first.messages)).toEqual([{ ref: refOf('c1'), delivery: '1', attempt: '1' }])
    expect(givenIn((await node.pass('', '0-0')).messages)).toHaveLength(1)
    expect((await node.pass()).messages).toEqual([])
  })

  it('admits what needs the current instance only where that one waits', async () => {
    const { node } = await waiting()
    expect((await node.admit('c1', { needs: 'current', current: 'i2' }))[0]).toBe('J')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
    expect((await node.admit('c2', { needs: 'current', current: 'i1' }))[0]).toBe('G')
    expect((await node.admit('c3', { needs: 'any' }))[0]).toBe('G')
  })

  it('answers an admission that comes again with the record, and gives nothing twice', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    expect((await node.admit('c1'))[0]).toBe('S')
    expect(await node.admit('c1', { print: 'other' })).toBe('C')
    expect(await attempts(node, 'c1')).toMatchObject({ count: 1 })
    expect(node.counters.other).toMatchObject({ admitted: 1, dispatch_repeated: 1, dispatch_conflict: 1 })
  })

  it('rejects for good what a client sent twice, and admits what is dispatched again', async () => {
    const { node } = await waiting()
    await node.admit('c1', { capacity: 1 })
    const rejected = await node.admit('c2', { capacity: 1, by: 'first' })
    expect(rejected[0]).toBe('J')
    await node.say('c1', 'r')
    expect(await node.admit('c2', { capacity: 1, by: 'first' })).toBe(rejected)
    expect((await node.status('c2'))?.terminal).toMatchObject({ state: 'rejected', reason: 'capacity_exceeded' })
    expect((await node.admit('c2', { capacity: 1 }))[0]).toBe('G')
  })

  it('holds the outcome of a former attempt against no later one', async () => {
    const { node, givenIn } = await waiting()
    await node.admit('c1')
    expect(await node.conclude('c1', 1, 'deliver_timed_out')).toBe('p')
    expect(await node.conclude('c1', 1, 'deliver_timed_out')).toBe('p')
    for (const _ of [1, 2]) await node.retry('c1', 1)
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c1'), delivery: '2', attempt: '2' }])
    await node.conclude('c1', 1, 'handed_over')
    expect(node.counters.other).toMatchObject({ late_outcome: 1 })
    expect(await attempts(node, 'c1')).toMatchObject({ count: 2, confirmed: 0, last_outcome: null })
    await node.conclude('c1', 2, 'handed_over')
    expect(await attempts(node, 'c1')).toMatchObject({ count: 2, confirmed: 1, last_outcome: 'handed_over' })
    expect((await node.status('c1'))?.recovery).toMatchObject({ count: 1, reason: 'deliver_timed_out' })
  })

  it('fails a command with its last attempt', async () => {
    const { node } = await waiting()
    await node.admit('c1', { maxAttempts: 1 })
    expect(await node.conclude('c1', 1, 'rejected')).toBe('0')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'failed', reason: 'attempts_exhausted' })
    expect(node.told()).toEqual([`e\tfailed\t${refOf('c1')}`])
  })

  it('takes an attempt back that was not begun as if there had been none, once', async () => {
    const { node, givenIn } = await waiting()
    await node.admit('c1')
    await node.detach(1)
    for (const _ of [1, 2]) await node.giveBack('c1', 1)
    expect(await node.status('c1')).toMatchObject({ attempts: { count: 0, last_at: null }, recovery: { count: 0 } })
    await node.attach('i2', 2)
    expect(givenIn(node.told())).toEqual([{ ref: refOf('c1'), delivery: '2', attempt: '1' }])
  })

  it('counts an attempt that was begun and given back against no bound', async () => {
    const { node } = await waiting()
    await node.admit('c1', { maxAttempts: 1 })
    await node.giveBack('c1', 1, '1')
    expect(await node.status('c1')).toMatchObject({
      attempts: { count: 2 },
      recovery: { count: 1, reason: 'requeued' },
      terminal: null,
    })
  })

  it('says what a waiter was given, to whoever asks, detaches or takes its place', async () => {
    const { node } = await waiting()
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    await node.conclude('c2', 1, 'handed_over')
    const hand = `${refOf('c1')} 1,${refOf('c3')} 1`
    expect(await node.attach('i1', 1)).toBe(`W${hand}`)
    expect(await node.fetch('c1', 1)).toMatch(/^c\tada:tab:c1\t1\t1\t\d+\t1\trefresh\t1$/)
    expect(await node.fetch('c2', 1)).toBe('0')
    await node.attach('i2', 2)
    expect(node.told()).toEqual([`r\t${MAILBOX}\t1\t${hand}`])
    await node.admit('c4')
    expect(await node.detach(2)).toBe(`${refOf('c4')} 1`)
    expect(await node.detach(2)).toBe('')
  })

  it('lets no late attach take a mailbox, whoever waits or has waited there since', async () => {
    const { node } = await waiting()
    await node.attach('i3', 3)
    expect(await node.attach('i2', 2)).toBe('Li3')
    await node.detach(1)
    expect((await node.admit('c1', { needs: 'any' }))[0]).toBe('G')
    await node.detach(3)
    expect(await node.attach('i2', 2)).toBe('L')
    expect((await node.attach('i4', 4))[0]).toBe('W')
    expect(node.counters.other).toMatchObject({ waiter_late: 2 })
  })

  it('numbers attaches on where its numbers have gone ahead of its clock', async () => {
    const { ask, node } = await waiting()
    const ahead = 9_000_000_000_000_000
    await ask('SET', ['order'], String(ahead))
    expect([await node.order(), await node.order()]).toEqual([`${ahead + 1}`, `${ahead + 2}`])
  })

  it('records a hand-over with the word that comes after it, once, and none of another attempt', async () => {
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

  it('records a hand-over after the end where it was before that', async () => {
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

  it('tells an end again to whoever says it again, and holds to the first', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    const told = [`e\tresulted\t${refOf('c1')}`]
    expect(await node.say('c1', 'r', { by: 'x' })).toBe('1')
    expect(node.told()).toEqual(told)
    expect(await node.say('c1', 'r', { by: 'x' })).toBe('1')
    expect(node.told()).toEqual(told)
    expect(await node.say('c1', 'c', { by: 'y' })).toBe('0')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'resulted' })
    expect(node.counters.outcome).toEqual({ resulted: 1 })
  })

  it('ends what is past its deadline in the next pass, out of its box, and gives its places back once', async () => {
    const { clock, node, ask } = await waiting(1, { maxPerUser: 3 })
    await node.admit('c1', { ttl: 500 })
    await node.admit('c2', { ttl: 500 })
    await node.admit('c3')
    clock.advance(749)
    await node.pass()
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'expired', reason: 'deadline_passed' })
    expect(await node.status('c3')).toMatchObject({ attempts: { count: 1 }, terminal: null })
    expect(await ask('EXISTS', ['box', 'ada', 'tab'])).toBe(0)
    expect(await ask('HGET', ['held'], 'ada')).toBe('1')
    const answers = []
    for (const id of ['c4', 'c5', 'c6']) answers.push((await node.admit(id))[0])
    expect(answers).toEqual(['N', 'N', 'J'])
  })

  it('knows nothing of a command whose retention is over, before any pass has come by', async () => {
    const { clock, node } = await waiting()
    await node.admit('c1')
    await node.say('c1', 'r', { by: 'x' })
    clock.advance(RETENTION_MS - 1)
    expect((await node.admit('c1'))[0]).toBe('S')
    clock.advance(1)
    expect(await node.status('c1')).toBeNull()
    expect(await node.say('c1', 'r', { by: 'x' })).toBe('0')
    expect((await node.admit('c1'))[0]).toBe('G')
    expect((await node.status('c1'))?.terminal).toBeNull()
  })

  it('forgets each command when its retention is over, though one beside it is open for longer', async () => {
    const { clock, node, ask } = await waiting(500)
    await node.admit('long', { ttl: 80_000_000 })
    for (let i = 0; i < 60; i++) {
      await node.admit(`c${i}`)
      await node.say(`c${i}`, 'r')
    }
    const left = async () => [await ask('LLEN', ['of', 'ada']), await ask('HMGET', ['counts'], 'a', 'r')]
    // Deleted together with what ends soon after.
    clock.advance(RETENTION_MS + RETENTION_MS / 64)
    await node.pass()
    expect(await left()).toEqual([1, ['1', '0']])
    expect((await node.status('long'))?.terminal).toBeNull()
    // What is left of the chunk is little: the references are gone.
    const log = (await ask('LRANGE', ['log', '0'], '0', '-1')) as string[]
    expect(log.filter((ref) => ref !== '')).toEqual([refOf('long')])
    await node.say('long', 'c')
    clock.advance(2 * RETENTION_MS)
    await node.pass()
    expect(await ask('EXISTS', ['log', '0'])).toBe(0)
    expect(await left()).toEqual([0, ['0', '0']])
    // Numbers go on in a chunk of their own.
    await node.admit('next')
    expect(await ask('GET', ['seq'])).toMatch(/^257 \d+$/)
  })

  it('keeps the newest ended and rejected commands, as many of each', async () => {
    const { node } = await waiting(8, { maxRetained: 3 })
    await node.admit('open')
    for (let i = 0; i < 8; i++) {
      await node.admit(`c${i}`)
      await node.say(`c${i}`, 'f')
      await node.admit(`r${i}`, { needs: 'current', current: 'nobody' })
    }
    const kept = []
    for (const id of ['open', ...Array.from({ length: 8 }, (_, i) => [`c${i}`, `r${i}`]).flat()])
      if (await node.status(id)) kept.push(id)
    expect(kept).toEqual(['open', 'c5', 'r5', 'c6', 'r6', 'c7', 'r7'])
  })

  it('keeps a line for each of the last sixteen attempts, and sums of those before', async () => {
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

  it('gives a place back when none of the dispatches that share it has it any more, or its command is over', async () => {
    const { node, ask } = await waiting()
    const places = () => ask('HGET', ['scopes'], 'red')
    const [one, two] = [await node.reserve('red', 'c1', 900, 'one'), await node.reserve('red', 'c1', 5_000, 'two')]
    // Both have the deadline of the first.
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

  it('lets a reservation that was left behind go with its deadline, and all that is kept of its scope', async () => {
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
    // Whether or not a pass has come by, another command has the place at once.
    clock.advance(1)
    expect(await node.reserve('red', 'c2', 500)).not.toBe('')
    clock.advance(1_000)
    for (const _ of [1, 2]) await node.pass()
    expect(await kept()).toEqual([0, 0, 0, 0])
  })

  it('declares a node dead at the second look at its lease, and gives what it had to whoever waits now', async () => {
    const { clock, node, ask, givenIn, other } = await waiting()
    const b = other('b')
    await b.pass()
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    await node.conclude('c2', 1, 'handed_over')
    await node.say('c3', 'k', { instance: 'i1' })
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
    ])
    expect(await b.status('c1')).toMatchObject({ recovery: { count: 1, reason: 'lease_expired' } })
    expect((await b.status('c3'))?.acknowledgement.state).toBe('acknowledged')
    expect(await ask('HEXISTS', ['leases'], 'a')).toBe(0)
    // What the node says of its attempts then is late, and it begins anew.
    expect(await node.conclude('c1', 1, 'handed_over')).toBe('0')
    expect((await node.pass()).standing).toBe('anew')
  })

  it('makes nobody dead by a step of its clock', async () => {
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

  it('lets a node begin anew that was told more than the store knows', async () => {
    const { node, ask, other } = await waiting()
    const b = other('b')
    for (const id of ['c1', 'c2']) await b.admit(id)
    await node.pass()
    const last = (await ask('XREVRANGE', ['inbox', 'a'], '+', '-', 'COUNT', '1')) as [[string]]
    // As after a failover to a copy that lacks the last message, and has had another one since.
    await ask('XDEL', ['inbox', 'a'], last[0][0])
    await ask('HSET', ['told'], 'a', '1-0')
    await b.admit('c3')
    expect((await node.pass()).standing).toBe('anew')
  })

  it('takes no command for another, and ends it where somebody put something else in its place', async () => {
    const { clock, node, ask, key } = await waiting()
    await node.admit('c1', { ttl: 900 })
    await node.admit('c2')
    await ask('COPY', ['command', 'ada', 'tab', 'c2'], key('command', 'ada', 'tab', 'c1'), 'REPLACE')
    clock.advance(1_200)
    await node.pass()
    expect(await ask('HMGET', ['counts'], 'a', 'x')).toEqual(['1', null])
    expect(await ask('HGET', ['scopes'], 'ada')).toBe('1')
  })

  it('goes on in its passes where somebody put another type in the place of a mailbox', async () => {
    const { clock, node, ask } = await waiting(1)
    for (const id of ['c1', 'c2']) await node.admit(id, { ttl: 900 })
    await ask('DEL', ['box', 'ada', 'tab'])
    await ask('SET', ['box', 'ada', 'tab'], 'foreign')
    clock.advance(1_200)
    await node.pass()
    expect((await node.status('c1'))?.terminal?.state).toBe('expired')
    expect((await node.status('c2'))?.terminal?.state).toBe('expired')
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
