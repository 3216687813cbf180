/** Claims that travel with another call: one way to the store less, and no command more or fewer for it. */
import { beforeEach, expect, it } from 'vitest'
import { ACKNOWLEDGE, END } from '../../src/redis/delivery/script-ends.js'
import { DETACH } from '../../src/redis/delivery/script-nodes.js'
import { ADMIT, CLAIM, CONCLUDE, RELEASE, RESERVE } from '../../src/redis/delivery/scripts.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { ASK } from '../contract/clock.js'
import { command, connection, first, key, client as mailbox, second } from '../contract/delivery-commands.js'
import { openShard } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { type Plan, runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

/** For a node whose other calls are to be answered, attempts that nobody gives up meanwhile, and one command in hand at a time. */
const PATIENT = { commandTimeoutMs: 2_000, ackTimeoutMs: 600_000, maxDeliveriesPerClient: 1 }
const long = { deadline_ms: 600_000 }

describeNode('a claim that travels with another call', ({ client, make }) => {
  let plan: Plan
  let lossy: ReturnType<typeof lossyClient>['client']
  beforeEach(() => {
    ;({ client: lossy, plan } = lossyClient(client()))
  })
  const runs = async (script: ScriptText) => plan.seen.filter(await runsOf(script)).length

  /** A node at which a client waits that has found its mailbox empty. */
  async function idle(deliver: Parameters<typeof connection>[0], options: Parameters<typeof make>[0] = {}) {
    const { dispatcher } = make({ client: lossy, ...PATIENT, ...options })
    const tab = connection(deliver)
    const waiter = await dispatcher.attach(first, tab.deliver)
    await soon(async () => expect(await runs(CLAIM)).not.toBe(0))
    // Scripts that the store does not know yet are sent twice, and it is the first that would be met.
    const away = { ...mailbox, client_id: 'away', instance_id: 'i1' }
    const known = { ...away, command_id: 'known' }
    const other = await dispatcher.attach(away, () => {})
    await dispatcher.dispatch({ ...command('known', long), client_id: 'away' })
    await soon(async () => expect((await dispatcher.inspector.status(known, ASK))?.attempts.confirmed).toBe(1))
    await dispatcher.acknowledge(known)
    await dispatcher.settle({ ...known, state: 'resulted' })
    await other.detach()
    // A pass behind the answer.
    await dispatcher.reconcile()
    plan.forget()
    return { dispatcher, tab, waiter }
  }

  type Node = ReturnType<typeof make>['dispatcher']
  it.each<[string, ScriptText, (node: Node, id: string) => unknown]>([
    ['an acknowledgement', ACKNOWLEDGE, (node, id) => node.acknowledge({ ...first, command_id: id })],
    ['an end', END, (node, id) => node.settle({ ...key(id), state: 'resulted' })],
    ['a hand-over', CONCLUDE, () => {}],
    ['a refusal', CONCLUDE, () => Promise.reject(new Error('not now'))],
  ])('takes a command to an idle client with its admission, and the next with %s', async (_what, script, release) => {
    let open = () => {}
    const held = new Promise<void>((resolve) => {
      open = resolve
    })
    const { dispatcher, tab } = await idle(async ({ command_id }) => {
      await held
      await release(dispatcher, command_id)
    })
    const once = { ...long, max_attempts: 1 }
    await dispatcher.dispatch(command('c1', once))
    await tab.got(1)
    expect(await runs(CLAIM)).toBe(0)
    // They find the mailbox busy.
    for (const id of ['c2', 'c3']) await dispatcher.dispatch(command(id, once))
    open()
    await tab.got(3)
    expect(tab.ids()).toEqual(['c1', 'c2', 'c3'])
    expect(await runs(script)).toBeGreaterThan(1)
    expect(await runs(CLAIM)).toBe(0)
  })

  it.each([
    'lost',
    'held',
    'unsent',
  ] as const)('is made again where its answer is %s, and takes one command', async (fault) => {
    const { dispatcher, tab } = await idle(undefined, { commandTimeoutMs: 500 })
    const met = plan.meet(fault, await runsOf(ADMIT))
    await Promise.resolve(dispatcher.dispatch(command('c1', { ...long, max_attempts: 1 }))).catch(() => {})
    await met
    await soon(() => dispatcher.dispatch(command('c1', { ...long, max_attempts: 1 })))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    await plan.release()
    await soon(async () =>
      expect((await dispatcher.inspector.status(key('c1'), ASK))?.attempts).toMatchObject({ count: 1, confirmed: 1 }),
    )
    expect(tab.ids()).toEqual(['c1'])
  })

  it('is put back where its waiter has left without learning of it', async () => {
    const { dispatcher, tab, waiter } = await idle(undefined)
    const held = plan.meet('held', await runsOf(ADMIT))
    const admission = dispatcher.dispatch(command('c1', { ...long, max_attempts: 1 }))
    await held
    await waiter.detach()
    await plan.release()
    expect((await admission).terminal).toBeNull()
    expect(await dispatcher.inspector.status(key('c1'), ASK)).toMatchObject({
      attempts: { count: 1, last_outcome: null },
      recovery: { reason: 'requeued' },
    })
    const next = connection()
    await dispatcher.attach(second, next.deliver)
    await next.got(1)
    expect(tab.ids()).toEqual([])
  })

  /** Two commands, of which the first is in hand until the test is over. */
  async function busy(options: Parameters<typeof make>[0] = {}) {
    const { dispatcher, tab } = await idle(
      ({ command_id }) => (command_id === 'c1' ? new Promise(() => {}) : null),
      options,
    )
    for (const id of ['c1', 'c2']) {
      await dispatcher.dispatch(command(id, { ...long, max_attempts: 1 }))
      await tab.got(1)
    }
    return { dispatcher, tab }
  }
  const attemptsOf = async (dispatcher: Node, id: string) =>
    (await dispatcher.inspector.status(key(id), ASK))?.attempts.count

  it('takes nothing while what is in hand stays there', async () => {
    const { dispatcher, tab } = await busy()
    expect(await dispatcher.acknowledge({ ...key('c1'), instance_id: 'i0' })).toBe(false)
    expect(await dispatcher.settle({ ...key('c1'), instance_id: 'i2', state: 'resulted' })).toBe(false)
    expect(await attemptsOf(dispatcher, 'c2')).toBe(0)
    const next = connection()
    await dispatcher.attach(second, next.deliver)
    await next.got(1)
    expect([next.ids(), tab.ids()]).toEqual([['c2'], ['c1']])
  })

  it('reaches the connection that made it, though another one has taken its place', async () => {
    const { dispatcher, tab } = await busy()
    const held = plan.meet('held', await runsOf(ACKNOWLEDGE))
    const acknowledged = dispatcher.acknowledge({ ...first, command_id: 'c1' })
    await held
    await dispatcher.attach(second, connection().deliver)
    await plan.release()
    expect(await acknowledged).toBe(true)
    await tab.got(2)
    expect(tab.ids()).toEqual(['c1', 'c2'])
  })

  it('travels with no outcome that is told again', async () => {
    let attempts = 0
    const { dispatcher, tab } = await idle(
      () => (++attempts === 1 ? Promise.reject(new Error('not now')) : new Promise(() => {})),
      { commandTimeoutMs: 500 },
    )
    const held = plan.meet('held', await runsOf(CONCLUDE))
    await dispatcher.dispatch(command('c1', long))
    await held
    await soon(() => expect(tab.ids()).toEqual(['c1', 'c1']))
    await dispatcher.dispatch(command('c2', long))
    await soon(async () => expect(await runs(CONCLUDE)).toBeGreaterThan(1))
    await dispatcher.reconcile()
    expect(await attemptsOf(dispatcher, 'c2')).toBe(0)
    await plan.release()
  })

  it('waits for no release in another shard', async () => {
    const { dispatcher } = make({ client: lossy, ...PATIENT, shards: 4 })
    // Some scope that lies in another shard than its user.
    for (let n = 0; ; n++) {
      const ids = { user_id: `u${n}`, client_id: 'tab' }
      const tab = connection(({ command_id }) => (command_id === 'c1' ? new Promise(() => {}) : null))
      await dispatcher.attach({ ...ids, instance_id: 'i1' }, tab.deliver)
      plan.forget()
      for (const [id, scope_id] of [
        ['c1', 'elsewhere'],
        ['c2', 'elsewhere'],
      ]) {
        await dispatcher.dispatch({ ...command(id as string, long), ...ids, scope_id })
        await tab.got(1)
      }
      if ((await runs(RESERVE)) === 0) continue
      // Once unheld, or the store does not know the script yet.
      await dispatcher.cancel({ ...ids, command_id: 'c2' })
      await dispatcher.dispatch({ ...command('c3', long), ...ids, scope_id: 'elsewhere' })
      const held = plan.meet('held', await runsOf(RELEASE))
      const settled = dispatcher.settle({ ...ids, command_id: 'c1', state: 'resulted' })
      await held
      await tab.got(2)
      expect(tab.ids()).toEqual(['c1', 'c3'])
      await plan.release()
      return expect(await settled).toBe(true)
    }
  })

  it('is made only for the instance that the registry names', async () => {
    let current = 'i1'
    let hold: Promise<unknown> = Promise.resolve()
    const connections = { currentInstance: async () => current }
    const { dispatcher, tab } = await idle(() => hold, { connections })
    let open = () => {}
    hold = new Promise<void>((resolve) => {
      open = resolve
    })
    await Promise.all(['c1', 'c2', 'c3'].map((id) => dispatcher.dispatch(command(id, long))))
    await tab.got(1)
    plan.forget()
    await dispatcher.acknowledge({ ...first, command_id: 'c1' })
    await tab.got(2)
    expect(await runs(CLAIM)).toBe(0)
    current = 'i2'
    expect(await dispatcher.acknowledge({ ...second, command_id: 'c2' })).toBe(true)
    open()
    await dispatcher.reconcile()
    // The registry was asked, and the mailbox left.
    await soon(async () => expect(await runs(DETACH)).toBe(1))
    expect(tab.ids()).toEqual(['c1', 'c2'])
  })
})

describeNode('a shard that is brought a claim behind another call', ({ client }) => {
  const waiting = async () => {
    const shard = openShard(client())
    const node = shard.node('a')
    await node.attach('i1', 1)
    return { ...shard, node }
  }

  it('gives the first command away, once for a number, and answers the call as ever', async () => {
    const { node } = await waiting()
    await node.admit('c1')
    const admitted = await node.admit('c2', { next_claim: '1 i1' })
    expect(admitted.answer.became).toBe('admitted')
    expect(admitted.claimed).toMatchObject({ command_id: 'c1', attempt: 1, behind: 1 })
    expect((await node.admit('c2', { next_claim: '1 i1' })).claimed).toMatchObject({ command_id: 'c1', attempt: 1 })
    expect((await node.claim('i1', 1)).answer).toMatchObject({ command_id: 'c1', attempt: 1 })
    expect((await node.acknowledge('c1', 'i1', 'x', '2 i1')).claimed).toMatchObject({ command_id: 'c2', behind: 0 })
    expect((await node.end('c2', 'resulted', 'y', '3 i1')).claimed).toBe('empty')
    expect((await node.end('c2', 'resulted', 'y', '2 i1')).claimed).toBe('more')
    expect((await node.end('c2', 'resulted', 'y')).claimed).toBeUndefined()
  })

  it('gives nothing to whoever does not wait there', async () => {
    const { node } = await waiting()
    expect((await node.admit('c1', { next_claim: '1 i2' })).claimed).toBe('replaced')
    await node.detach('i1', 1)
    expect((await node.admit('c1', { next_claim: '2 i1' })).claimed).toBe('missing')
    expect((await node.status('c1'))?.attempts.count).toBe(0)
  })

  it('gives nothing behind a call that leaves the mailbox as it was', async () => {
    const { node } = await waiting()
    for (const id of ['c1', 'c2']) await node.admit(id)
    await node.claim('i1', 1)
    expect((await node.acknowledge('c1', 'i0', 'x', '2 i1')).claimed).toBeUndefined()
    expect((await node.end('none', 'resulted', 'x', '2 i1')).claimed).toBeUndefined()
    expect((await node.status('c2'))?.attempts.count).toBe(0)
    expect((await node.acknowledge('c1', 'i1', 'x', '2 i1')).claimed).toMatchObject({ command_id: 'c2' })
  })

  it('answers a call whose claim failed', async () => {
    const { node, ask } = await waiting()
    await node.admit('c1')
    await ask('SET', ['box', mailbox.user_id, mailbox.client_id], 'foreign')
    const ended = await node.end('c1', 'resulted', 'x', '1 i1')
    expect([ended.answer, ended.claimed]).toEqual([true, undefined])
  })
})
