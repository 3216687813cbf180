/** Claims that travel with another call: one way to the store less, and no command more or fewer for it. */
import { beforeEach, expect, it } from 'vitest'
import { ACKNOWLEDGE, END } from '../../src/redis/delivery/script-ends.js'
import { DETACH } from '../../src/redis/delivery/script-nodes.js'
import { ADMIT, CLAIM, CONCLUDE } from '../../src/redis/delivery/scripts.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { ASK } from '../contract/clock.js'
import { command, connection, first, key, client as mailbox, second } from '../contract/delivery-commands.js'
import { openShard } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { type Plan, runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

/** For a node whose other calls are to be answered, and attempts that nobody gives up meanwhile. */
const PATIENT = { commandTimeoutMs: 2_000, ackTimeoutMs: 600_000 }
const long = { deadlineMs: 600_000 }

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
    const once = { ...long, maxAttempts: 1 }
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
    await Promise.resolve(dispatcher.dispatch(command('c1', { ...long, maxAttempts: 1 }))).catch(() => {})
    await met
    await soon(() => dispatcher.dispatch(command('c1', { ...long, maxAttempts: 1 })))
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
    const admission = dispatcher.dispatch(command('c1', { ...long, maxAttempts: 1 }))
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
    expect(await dispatcher.acknowledge({ ...first, command_id: 'c2' })).toBe(false)
    expect(await dispatcher.cancel(key('c2'))).toBe(true)
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
    const admitted = await node.admit('c2', { next_claim: '1 i1 n' })
    expect(admitted.answer.became).toBe('admitted')
    expect(admitted.claimed).toMatchObject({ command_id: 'c1', attempt: 1, behind: 1 })
    expect((await node.admit('c2', { next_claim: '1 i1 n' })).claimed).toMatchObject({ command_id: 'c1', attempt: 1 })
    expect((await node.claim('i1', 1)).answer).toMatchObject({ command_id: 'c1', attempt: 1 })
    expect((await node.acknowledge('c1', 'i1', 'x', '2 i1 n')).claimed).toMatchObject({ command_id: 'c2', behind: 0 })
    expect((await node.end('c2', 'resulted', 'y', '3 i1 n')).claimed).toBe('empty')
    expect((await node.end('c2', 'resulted', 'y', '2 i1 n')).claimed).toBe('more')
    expect((await node.end('c2', 'resulted', 'y')).claimed).toBeUndefined()
  })

  it('gives nothing to whoever does not wait there', async () => {
    const { node } = await waiting()
    expect((await node.admit('c1', { next_claim: '1 i2 n' })).claimed).toBe('replaced')
    await node.detach('i1', 1)
    expect((await node.admit('c1', { next_claim: '2 i1 n' })).claimed).toBe('missing')
    expect((await node.status('c1'))?.attempts.count).toBe(0)
  })

  it('answers a call whose claim failed', async () => {
    const { node, ask } = await waiting()
    await node.admit('c1')
    await ask('SET', ['box', mailbox.user_id, mailbox.client_id], 'foreign')
    const ended = await node.end('c1', 'resulted', 'x', '1 i1 n')
    expect([ended.answer, ended.claimed]).toEqual([true, undefined])
  })
})
