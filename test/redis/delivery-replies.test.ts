/** A dispatcher whose replies are lost, come late or whose commands come twice: nobody goes deaf, no command is stranded. */
import { beforeEach, describe, expect, it } from 'vitest'
import { ACKNOWLEDGE, END } from '../../src/redis/delivery/script-ends.js'
import { ATTACH, DETACH, ORDER, RECONCILE, TAKE } from '../../src/redis/delivery/script-nodes.js'
import { ADMIT, CLAIM, CONCLUDE, RELEASE, RESERVE } from '../../src/redis/delivery/scripts.js'
import { shardOf } from '../../src/redis/store/keys.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { ASK, FIRST, walk } from '../contract/clock.js'
import { command, connection, first, key, second } from '../contract/delivery-commands.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { type Fault, type Plan, runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

const SCRIPTS: Record<string, ScriptText> = { ORDER, ATTACH, ADMIT, CLAIM, CONCLUDE, ACKNOWLEDGE, END, TAKE, RECONCILE }
const FAULTS: Fault[] = ['lost', 'late', 'repeated', 'held', 'unsent']

/** For a node whose other calls are to be answered: longer than a busy machine takes. */
const PATIENT = { commandTimeoutMs: 2_000 }

describeNode('a dispatcher whose replies get lost', ({ client, make, observe, server }) => {
  let plan: Plan
  let lossy: ReturnType<typeof lossyClient>['client']
  beforeEach(() => {
    ;({ client: lossy, plan } = lossyClient(client()))
  })
  const pair = (options = {}) => {
    const { deploymentId, dispatcher } = make({ client: lossy, commandTimeoutMs: 300, ackTimeoutMs: 600, ...options })
    return { deploymentId, dispatcher, other: make({ deploymentId, ackTimeoutMs: 600, ...options }).dispatcher }
  }
  /** What a host does: the same again, until it is answered. */
  const again = <T>(work: () => T | Promise<T>) => soon(work)
  const reserved = async (deploymentId: string) => {
    const items = await walk((page) => observe(deploymentId).listTenants(page, ASK))
    return items.reduce((sum, { reserved_commands }) => sum + reserved_commands, 0)
  }

  for (const [name, script] of Object.entries(SCRIPTS))
    describe(`of ${name}`, () => {
      for (const fault of FAULTS)
        it(`hands over what was admitted, once it ends ends it, and hears the next (${fault})`, async () => {
          const { deploymentId, dispatcher, other } = pair()
          void plan.meet(fault, await runsOf(script))
          const tab = connection()
          await again(() => dispatcher.attach(first, tab.deliver))
          await again(() => dispatcher.dispatch(command('c1', { deadline_ms: 600_000 })))
          await soon(() => expect(tab.ids()).toContain('c1'))
          await soon(async () => expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(true))
          await again(() => dispatcher.settle({ ...key('c1'), state: 'resulted' }))
          await plan.release()
          await soon(async () =>
            expect((await other.inspector.status(key('c1'), ASK))?.terminal).toMatchObject({ state: 'resulted' }),
          )
          expect(await reserved(deploymentId)).toBe(0)
          await other.dispatch(command('c2', { require_waiter: true }))
          await soon(() => expect(tab.ids()).toContain('c2'))
          const { attempts } = (await other.inspector.status(key('c1'), ASK)) ?? {}
          expect(attempts?.confirmed).toBeLessThanOrEqual(attempts?.count ?? 0)
        })
    })

  it('is told by the next pass of what an admission said in a reply that was lost, without a second dispatch', async () => {
    // Whoever asked learns of it after two seconds: no attempt is given up before.
    const { dispatcher } = pair({ ...PATIENT, ackTimeoutMs: 60_000 })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    // From here on the store knows the script.
    await again(() => dispatcher.dispatch(command('c0')))
    void plan.meet('lost', await runsOf(ADMIT))
    await expect(dispatcher.dispatch(command('c1'))).rejects.toMatchObject({ code: 'unavailable', outcome: 'unknown' })
    await soon(() => expect(tab.ids()).toEqual(['c0', 'c1']))
  })

  it('makes a claim whose answer was lost once more and not twice, so that the one attempt of a command reaches its client', async () => {
    const { dispatcher, other } = pair({ ...PATIENT, ackTimeoutMs: 10_000 })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    // The first claim finds nothing.
    await soon(async () => expect(plan.seen.filter(await runsOf(CLAIM))).not.toHaveLength(0))
    const lost = plan.meet('lost', await runsOf(CLAIM))
    await other.dispatch(command('c1', { max_attempts: 1 }))
    await lost
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    await soon(async () =>
      expect((await dispatcher.inspector.status(key('c1'), ASK))?.attempts).toMatchObject({ count: 1, confirmed: 1 }),
    )
  })

  it('puts back what a waiter claimed that has left without learning of it', async () => {
    const { dispatcher, other } = pair({ ...PATIENT, ackTimeoutMs: 600_000 })
    const tab = connection()
    const waiter = await dispatcher.attach(first, tab.deliver)
    await soon(async () => expect(plan.seen.filter(await runsOf(CLAIM))).not.toHaveLength(0))
    const lost = plan.meet('lost', await runsOf(CLAIM))
    await other.dispatch(command('c1', { max_attempts: 1, deadline_ms: 600_000 }))
    await lost
    await waiter.detach()
    const status = await dispatcher.inspector.status(key('c1'), ASK)
    expect(status).toMatchObject({
      attempts: { count: 1, confirmed: 0, last_outcome: null },
      recovery: { reason: 'requeued' },
      terminal: null,
    })
    const next = connection()
    await dispatcher.attach(second, next.deliver)
    await soon(() => expect(next.ids()).toEqual(['c1']))
    expect(tab.ids()).toEqual([])
  })

  it('puts it back too where the answer comes between a leave that the store was not told of and the next try', async () => {
    const { dispatcher, other } = pair({ commandTimeoutMs: 10_000, ackTimeoutMs: 600_000 })
    const tab = connection()
    const waiter = await dispatcher.attach(first, tab.deliver)
    await soon(async () => expect(plan.seen.filter(await runsOf(CLAIM))).not.toHaveLength(0))
    const held = plan.meet('held', await runsOf(CLAIM))
    await other.dispatch(command('c1', { max_attempts: 1, deadline_ms: 600_000 }))
    await held
    const lost = plan.meet('unsent', await runsOf(DETACH))
    const left = waiter.detach()
    await lost
    await plan.release()
    await left
    await soon(async () =>
      expect(await dispatcher.inspector.status(key('c1'), ASK)).toMatchObject({
        attempts: { count: 1, confirmed: 0 },
        recovery: { reason: 'requeued' },
        terminal: null,
      }),
    )
    const next = connection()
    await other.attach(second, next.deliver)
    await soon(() => expect(next.ids()).toEqual(['c1']))
    expect(tab.ids()).toEqual([])
  })

  it('never lets a late attach take the mailbox from a newer waiter', async () => {
    // The prelude would refuse it after two seconds; here it comes while it still may run.
    const { dispatcher, other } = pair({ commandTimeoutMs: 10_000 })
    const late = plan.meet('late', await runsOf(ATTACH))
    const former = Promise.resolve(dispatcher.attach(first, () => {})).catch((error) => error.code)
    await late
    expect(await former).toBe('unavailable')
    const tab = connection()
    await other.attach(first, tab.deliver)
    await plan.release()
    await dispatcher.dispatch(command('c1', { require_waiter: true }))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('never lets a late attach come after its own detach', async () => {
    const { deploymentId, dispatcher } = pair({ commandTimeoutMs: 10_000 })
    const late = plan.meet('late', await runsOf(ATTACH))
    await Promise.all([late, expect(dispatcher.attach(first, () => {})).rejects.toThrow()])
    await dispatcher.reconcile()
    await soon(async () => expect(plan.seen.filter(await runsOf(DETACH))).not.toHaveLength(0))
    await soon(async () =>
      expect(await server().cli('EXISTS', `relayscope:{${deploymentId}:0}:delivery:left:ada:tab`)).toBe('1'),
    )
    await plan.release()
    expect(await server().cli('EXISTS', `relayscope:{${deploymentId}:0}:delivery:waiter:ada:tab`)).toBe('0')
  })

  it.each([
    'settle',
    'cancel',
    'acknowledge',
  ] as const)('%s answers a client that sends it again, after a cut, what it did', async (name) => {
    const { dispatcher } = pair(PATIENT)
    const end = (id: string) =>
      name === 'settle'
        ? dispatcher.settle({ ...key(id), state: 'resulted' })
        : name === 'cancel'
          ? dispatcher.cancel(key(id))
          : dispatcher.acknowledge({ ...first, command_id: id, state: 'refused' })
    await dispatcher.attach(first, connection().deliver)
    // The store knows the script from then on, so that what is sent again is what was run.
    for (const id of ['c1', 'c2', 'c3']) await dispatcher.dispatch(command(id))
    expect(await end('c1')).toBe(true)
    void plan.meet('resent', await runsOf(name === 'acknowledge' ? ACKNOWLEDGE : END))
    expect(await end('c2')).toBe(true)
    expect(await end('c2')).toBe(false)
    void plan.meet('resent', await runsOf(name === 'acknowledge' ? ACKNOWLEDGE : END))
    expect(await end('c1')).toBe(false)
  })

  it('lets the signal of a command that was cancelled abort, though the answer to that was lost', async () => {
    const { dispatcher } = pair(PATIENT)
    const signals: AbortSignal[] = []
    await dispatcher.attach(first, (_, { signal }) => {
      signals.push(signal)
      return new Promise(() => {})
    })
    await dispatcher.dispatch(command('c1'))
    await soon(() => expect(signals).toHaveLength(1))
    void plan.meet('lost', await runsOf(END))
    await expect(dispatcher.cancel(key('c1'))).rejects.toMatchObject({ code: 'unavailable' })
    await dispatcher.reconcile()
    expect(signals[0]?.aborted).toBe(true)
  })

  it('confirms its waiters with each pass: those that the store lost, and those that only the store has', async () => {
    const { deploymentId, dispatcher } = pair(PATIENT)
    const prefix = `relayscope:{${deploymentId}:0}:delivery`
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    const incarnation = await server().cli('HGET', `${prefix}:waiter:ada:tab`, 'incarnation')
    await server().cli('DEL', `${prefix}:waiter:ada:tab`)
    await server().cli(
      'HSET',
      `${prefix}:waiter:ada:ghost`,
      'token',
      'x',
      'incarnation',
      incarnation,
      'instance',
      'i',
      'order',
      '1',
    )
    await server().cli('ZADD', `${prefix}:of:${incarnation}`, '1', 'ada\nghost')
    await dispatcher.reconcile()
    await soon(async () => expect(await server().cli('EXISTS', `${prefix}:waiter:ada:tab`)).toBe('1'))
    await soon(async () => expect(await server().cli('EXISTS', `${prefix}:waiter:ada:ghost`)).toBe('0'))
    expect((await dispatcher.dispatch(command('c1', { require_waiter: true }))).terminal).toBeNull()
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  for (const fault of ['lost', 'repeated', 'late'] as const)
    for (const [name, script] of Object.entries({ RESERVE, ADMIT, END, RELEASE }))
      it(`leaks no reservation past its deadline where the scope lies in another shard (${name} ${fault})`, async () => {
        const { deploymentId, dispatcher, other } = pair({ shards: 5 })
        const scope_id = ['red', 'green', 'blue', 'black'].find((scope) => shardOf(scope, 5) !== shardOf('ada', 5))
        void plan.meet(fault, await runsOf(script))
        await again(() => dispatcher.dispatch(command('c1', { scope_id, deadline_ms: 1_500 })))
        expect((await other.inspector.listTenants(FIRST, ASK)).items).toMatchObject([
          { scope_id, reserved_commands: 1 },
        ])
        await again(() => dispatcher.cancel(key('c1')))
        await plan.release()
        await soon(async () => expect(await reserved(deploymentId)).toBe(0))
      })
})
