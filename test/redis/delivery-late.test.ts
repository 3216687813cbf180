/** What is said of a command late, twice or by somebody who is not asked any more: the shard holds to what has become of it. */
import { expect, it } from 'vitest'
import type { DeliveryScript } from '../../src/redis/delivery/node-script.js'
import { RECONCILE } from '../../src/redis/delivery/script-nodes.js'
import { ADMIT } from '../../src/redis/delivery/scripts.js'
import { runScript } from '../../src/redis/store/script.js'
import { client as mailbox } from '../contract/delivery-commands.js'
import { ADMISSION, openShard, PATIENCE_MS, PLACE, RETENTION_MS, recordOf, refOf } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'

describeNode('what a shard of a dispatcher is told late', ({ client }) => {
  const waiting = async ({ maxPerUser = 100 } = {}) => {
    const shard = openShard(client())
    const node = shard.node('a', maxPerUser)
    await node.attach('i1', 1)
    return { ...shard, node }
  }

  it('admits what needs the current instance only where that one waits', async () => {
    const { node } = await waiting()
    const other = await node.admit('c1', { needs: 'current', current: 'i2' })
    expect(other.answer.became).toBe('rejected')
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
    expect((await node.admit('c2', { needs: 'current', current: 'i1' })).answer.became).toBe('admitted')
    expect((await node.admit('c3', { needs: 'any', current: '' })).answer.became).toBe('admitted')
  })

  it('tells of an admission again that is made again, as long as the command waits', async () => {
    const { node } = await waiting()
    const call = [`call\n${PLACE}`]
    expect((await node.admit('c1')).notices).toEqual(call)
    const again = await node.admit('c1')
    expect(again).toMatchObject({ notices: call, answer: { became: 'known' }, counted: ['other dispatch_repeated'] })
    await node.claim('i1', 1)
    expect((await node.admit('c1')).notices).toEqual([])
  })

  it('gives a command to nobody but who waits for its client now', async () => {
    const { node } = await waiting()
    await node.attach('i2', 2)
    await node.admit('c1')
    expect((await node.claim('i1', 1)).answer).toBe('replaced')
    expect((await node.claim('i2', 1)).answer).toMatchObject({ command_id: 'c1', attempt: 1 })
    await node.detach('i2', 2)
    expect((await node.claim('i2', 2)).answer).toBe('missing')
  })

  it('lets nobody leave for whoever waits there by now', async () => {
    const { node } = await waiting()
    await node.attach('i2', 2)
    await node.admit('c1')
    await node.detach('i1', 1)
    expect((await node.claim('i2', 1)).answer).toMatchObject({ command_id: 'c1' })
  })

  it('takes nothing out of a mailbox for a claim that a later one has overtaken', async () => {
    const { node } = await waiting()
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id)
    expect((await node.claim('i1', 1)).answer).toMatchObject({ command_id: 'c1' })
    expect((await node.claim('i1', 2)).answer).toMatchObject({ command_id: 'c2', behind: 1 })
    expect((await node.claim('i1', 1)).answer).toBe('more')
    expect((await node.status('c3'))?.attempts.count).toBe(0)
    expect((await node.claim('i1', 2)).answer).toMatchObject({ command_id: 'c2', attempt: 1, behind: 1 })
    expect((await node.claim('i1', 3)).answer).toMatchObject({ command_id: 'c3', behind: 0 })
  })

  it('holds an outcome of a former attempt against no later one', async () => {
    const { clock, node } = await waiting()
    await node.admit('c1')
    await node.claim('i1', 1)
    clock.advance(PATIENCE_MS)
    await node.reconcile()
    clock.advance(PATIENCE_MS)
    await node.reconcile()
    expect((await node.claim('i1', 2)).answer).toMatchObject({ command_id: 'c1', attempt: 2 })
    expect((await node.conclude('c1', 1, 'handed_over')).counted).toEqual(['other late_outcome'])
    expect((await node.status('c1'))?.attempts).toMatchObject({ count: 2, confirmed: 0, last_outcome: null })
    expect((await node.conclude('c1', 2, 'handed_over')).counted).toEqual(['other attempt_handed_over'])
    expect((await node.status('c1'))?.attempts).toMatchObject({ count: 2, confirmed: 1, last_outcome: 'handed_over' })
  })

  it('records no outcome of an attempt whose command has ended, and says the end once more', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    await node.claim('i1', 1)
    await node.end('c1', 'cancelled', 'x')
    const ended = await node.status('c1')
    const late = await node.conclude('c1', 1, 'handed_over')
    expect(late).toMatchObject({ counted: ['other late_outcome'], notices: [`cancelled\n${refOf('c1')}`] })
    expect(await node.status('c1')).toEqual(ended)
    expect(ended?.attempts).toMatchObject({ confirmed: 0, last_outcome: null })
  })

  it('passes over a command that expired in front of the mailbox, whose end stays what it is', async () => {
    const { clock, node } = await waiting()
    await node.admit('c1', { ttl: 500 })
    await node.admit('c2')
    clock.advance(500)
    const claimed = await node.claim('i1', 1)
    expect(claimed).toMatchObject({
      answer: { command_id: 'c2' },
      counted: ['outcome expired', expect.stringMatching(/^took /)],
    })
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'expired', reason: 'deadline_passed' })
  })

  it('tells an end again to whoever makes it again, and holds to the first', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    await node.claim('i1', 1)
    const told = [`resulted\n${refOf('c1')}`]
    expect(await node.end('c1', 'resulted', 'x')).toMatchObject({ answer: true, notices: told })
    expect(await node.end('c1', 'resulted', 'x')).toMatchObject({ answer: true, notices: told, counted: [] })
    expect(await node.end('c1', 'cancelled', 'y')).toMatchObject({ answer: false, notices: told, counted: [] })
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'resulted' })
  })

  it('gives the place of a user back once, where a pass is what ends the command', async () => {
    const { clock, node } = await waiting({ maxPerUser: 2 })
    const admit = async (id: string, ttl = 600_000) => (await node.admit(id, { ttl })).answer.became
    await admit('c1', 500)
    await admit('c2')
    clock.advance(500)
    await node.reconcile()
    expect([await admit('c3'), await admit('c4')]).toEqual(['admitted', 'rejected'])
  })

  it('knows nothing of a command whose record is over, before any pass has come by', async () => {
    const { clock, node } = await waiting()
    await node.admit('c1')
    await node.end('c1', 'resulted', 'x')
    clock.advance(RETENTION_MS - 1)
    expect((await node.admit('c1')).answer.became).toBe('known')
    clock.advance(1)
    expect(await node.status('c1')).toBeNull()
    expect(await node.end('c1', 'resulted', 'x')).toMatchObject({ answer: false, notices: [] })
    expect((await node.admit('c1')).answer.became).toBe('admitted')
    expect((await node.status('c1'))?.terminal).toBeNull()
  })

  it('counts a claim that never reached its node against no bound on attempts', async () => {
    const { node } = await waiting()
    await node.admit('c1', { max_attempts: 2 })
    await node.claim('i1', 1)
    await node.detach('i1', 1, 1)
    await node.attach('i2', 2)
    expect((await node.claim('i2', 1)).answer).toMatchObject({ command_id: 'c1', attempt: 2 })
    await node.conclude('c1', 2, 'rejected')
    expect(await node.status('c1')).toMatchObject({
      terminal: null,
      recovery: { count: 2, reason: 'deliver_rejected' },
    })
  })

  it('gives up attempts of all commands where somebody wrote junk into what only that reads', async () => {
    const { clock, node, spoilt } = await waiting()
    const junk = [
      ['c1', 'max_attempts'],
      ['c2', 'recovered'],
    ] as const
    for (const id of ['c1', 'c2', 'c3', 'c4']) await node.admit(id)
    for (const [id, field] of junk) await spoilt(id, field, 'junk')
    for (const field of ['max_attempts', 'recovered'] as const) await spoilt('c4', field, 'junk')
    for (const claim of [1, 2, 3]) await node.claim('i1', claim)
    clock.advance(PATIENCE_MS)
    await node.reconcile()
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'failed', reason: 'attempts_exhausted' })
    for (const id of ['c2', 'c3']) expect((await node.status(id))?.recovery.count).toBe(1)
    // A claim whose answer never came.
    expect((await node.claim('i1', 4)).answer).toMatchObject({ command_id: 'c4' })
    await node.detach('i1', 1, 4)
    expect((await node.status('c4'))?.recovery).toMatchObject({ count: 1, reason: 'requeued' })
  })

  it('goes on in its passes where somebody put another type in the place of what has ended', async () => {
    const { clock, node, ask } = await waiting()
    await node.admit('c1', { ttl: 2 * PATIENCE_MS })
    await node.admit('c2')
    for (const claim of [1, 2]) await node.claim('i1', claim)
    await node.conclude('c2', 1, 'rejected')
    expect((await node.claim('i1', 3)).answer).toBe('empty')
    clock.advance(2 * PATIENCE_MS)
    await ask('SET', ['ended'], 'foreign')
    await expect(node.reconcile()).rejects.toThrow('another type')
    // What the same pass wrote elsewhere is there.
    const members = (...name: string[]) => ask('ZRANGE', name, '0', '-1')
    expect(await members('state', 'expired')).toEqual([refOf('c1')])
    expect(await members('state', 'attempted')).toEqual([refOf('c2')])
    expect(await members('todo', 'a')).toEqual([PLACE])
    expect(await ask('EXISTS', ['payload', mailbox.user_id, mailbox.client_id, 'c1'])).toBe(0)
    await ask('DEL', ['ended'])
    expect((await node.claim('i1', 4)).answer).toMatchObject({ command_id: 'c2', attempt: 2 })
  })

  it('takes no record for that of another command', async () => {
    const { node, ask, key } = await waiting()
    await node.admit('c1')
    await ask('COPY', recordOf('c1'), key(...recordOf('c2')))
    expect((await node.end('c2', 'cancelled', 'x')).answer).toBe(false)
    expect((await node.status('c1'))?.terminal).toBeNull()
  })

  it('lists the others where the number of one is junk', async () => {
    const { clock, node, ask, spoilt } = await waiting()
    for (const id of ['c1', 'c2', 'c3']) await node.admit(id, { ttl: 900 })
    await spoilt('c1', 'seq', ' 7')
    await spoilt('c2', 'attempts', 'nan')
    clock.advance(900)
    await node.reconcile()
    expect(await ask('ZRANGE', ['state', 'expired'], '0', '-1')).toEqual([refOf('c3')])
  })

  it('lists all that several passes of one run have ended', async () => {
    const { clock, store, ask } = await waiting()
    const many = { max_kept: 10_000, max_tracked: 10_000, max_per_user: 10_000 }
    const node = { incarnation: 'a', node: 'a', retention_ms: RETENTION_MS, patience_ms: PATIENCE_MS, ...many }
    const run = <Given>(script: DeliveryScript<Given, unknown>, calls: Given[]) =>
      runScript(store, script, 0, { ...node, given: calls.map((call) => script.callOf(call)) })
    // More than fit into one command.
    for (let from = 0; from < 1_200; from += 100)
      await run(
        ADMIT,
        Array.from({ length: 100 }, (_, i) => ({ ...ADMISSION, id: `c${from + i}`, ttl: 900, capacity: 10_000 })),
      )
    clock.advance(900)
    const pass = { max_commands: 200, lease_ms: 5_000, after: '0', waiters: 0, held_json: '[]' }
    expect((await run(RECONCILE, Array(7).fill(pass))).failed).toEqual(new Map())
    expect(await ask('ZCARD', ['state', 'expired'])).toBe(1_200)
    expect(await ask('EXISTS', ['state', 'waiting'])).toBe(0)
  })

  it('ends a command once, and brings it to its end, whatever somebody wrote in the place of its phase', async () => {
    const { clock, node, spoilt } = await waiting()
    const write = (id: string, phase: string) => spoilt(id, 'phase', phase)
    for (const id of ['c1', 'c2']) await node.admit(id, { ttl: 900 })
    await node.end('c1', 'resulted', 'x')
    await write('c1', 'ready')
    expect((await node.end('c1', 'cancelled', 'y')).answer).toBe(false)
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'resulted' })
    await write('c2', 'ended')
    clock.advance(900)
    await node.reconcile()
    expect((await node.status('c2'))?.terminal).toMatchObject({ state: 'expired' })
  })

  it('fails a command of which nobody knows any more what is to be done, and goes on with the next', async () => {
    const { node, spoilt } = await waiting()
    for (const id of ['c1', 'c2']) await node.admit(id)
    await spoilt('c1', 'action', '')
    expect((await node.claim('i1', 1)).answer).toMatchObject({ command_id: 'c2' })
    expect((await node.status('c1'))?.terminal).toMatchObject({ state: 'failed', reason: 'payload_missing' })
    // Lost when its answer was, it is not handed over by the claim that is made again.
    await spoilt('c2', 'action', '')
    expect((await node.claim('i1', 1)).answer).toBe('more')
  })

  it('hands over what lies in the store as it lies there, whatever it is', async () => {
    const { node, ask } = await waiting()
    await node.admit('c1')
    const [, ...ids] = recordOf('c1')
    await ask('SET', ['payload', ...ids], '1\0missing\0')
    expect((await node.claim('i1', 1)).answer).toMatchObject({ command_id: 'c1', attempt: 1, payload: '1\0missing\0' })
  })

  it('puts a lost claim back once, however often its waiter says that it has left', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    await node.claim('i1', 1)
    for (const _ of [1, 2]) await node.detach('i1', 1, 1)
    expect((await node.status('c1'))?.recovery).toMatchObject({ count: 1, reason: 'requeued' })
    await node.attach('i2', 2)
    expect((await node.claim('i2', 1)).answer).toMatchObject({ command_id: 'c1', behind: 0 })
    expect((await node.claim('i2', 2)).answer).toBe('empty')
  })

  it('gives a place back when none of the dispatches that share it has it any more, or its command is over', async () => {
    const { node, ask } = await waiting()
    const places = async () => [
      await ask('ZCARD', ['scope', 'red']),
      await ask('SCARD', ['sharers', 'red', refOf('c1')]),
    ]
    for (const attempt of ['one', 'two']) expect((await node.reserve('red', 'c1', 900, attempt)).answer).toBe(true)
    expect(await places()).toEqual([1, 2])
    // The one was refused for want of a waiter, the other one was admitted.
    for (const _ of [1, 2]) await node.release('red', 'c1', 'one')
    expect(await places()).toEqual([1, 1])
    await node.release('red', 'c1', '')
    expect(await places()).toEqual([0, 0])
    for (const attempt of ['one', 'two']) await node.reserve('red', 'c1', 900, attempt)
    expect(Number(await ask('PTTL', ['sharers', 'red', refOf('c1')]))).toBeGreaterThan(0)
    for (const attempt of ['one', 'two']) await node.release('red', 'c1', attempt)
    expect(await places()).toEqual([0, 0])
  })

  it('lets a reservation that was left behind go with its deadline, and all that is kept of its scope', async () => {
    const { clock, ask, node } = await waiting()
    expect((await node.reserve('red', 'c1', 500)).answer).toBe(true)
    expect((await node.reserve('red', 'c1', 900)).answer).toBe(true)
    expect((await node.reserve('red', 'c2', 900)).answer).toBe(false)
    const kept = async () => [
      await ask('EXISTS', ['scope', 'red']),
      await ask('ZCARD', ['scopes']),
      await ask('HLEN', ['capacities']),
      await ask('ZCARD', ['scope-until']),
    ]
    clock.advance(899)
    await node.reconcile()
    expect(await kept()).toEqual([1, 1, 1, 1])
    clock.advance(1)
    await node.reconcile()
    expect(await kept()).toEqual([0, 0, 0, 0])
  })
})
