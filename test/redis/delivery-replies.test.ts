/**
 * A dispatcher whose replies are lost or late, or whose calls arrive twice: clients keep receiving commands, and no command is
 * stranded.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Step } from '../../src/redis/delivery/steps.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { ASK, FIRST, walk } from '../contract/clock.js'
import { command, connection, first, key, second } from '../contract/delivery-commands.js'
import { runsOf } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import type { Fault, Plan } from './lossy-plan.js'
import { soon } from './wait-for.js'

const STEPS: Record<string, Step> = {
  order: 'take_order',
  attach: 'attach',
  admission: 'admit',
  outcome: 'conclude',
  word: 'report',
  pass: 'pass',
}
const FAULTS: Fault[] = ['lost', 'late', 'repeated', 'held', 'unsent']

/** A timeout for nodes whose other calls must succeed: longer than a busy machine takes. */
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
  /** Retries a call until it succeeds, as a host does. */
  const again = <T>(work: () => T | Promise<T>) => soon(work)
  const reserved = async (deploymentId: string) => {
    const items = await walk((page) => observe(deploymentId).listTenants(page, ASK))
    return items.reduce((sum, { reserved_commands }) => sum + (reserved_commands ?? 0), 0)
  }

  for (const [name, step] of Object.entries(STEPS))
    describe(`of each ${name}`, () => {
      for (const fault of FAULTS)
        it(`a command is delivered and ends once, and the next is delivered too (${fault})`, async () => {
          const { deploymentId, dispatcher, other } = pair()
          void plan.meet(fault, runsOf(step))
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

  it('delivers a command whose admission lost its reply with the next pass, without a second dispatch', async () => {
    // The caller gets the timeout after two seconds.
    const { dispatcher } = pair({ ...PATIENT, ackTimeoutMs: 60_000 })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    // From now on the script is loaded in the store.
    await again(() => dispatcher.dispatch(command('c0')))
    void plan.meet('lost', runsOf('admit'))
    await expect(dispatcher.dispatch(command('c1'))).rejects.toMatchObject({ code: 'unavailable', outcome: 'unknown' })
    await soon(() => expect(tab.ids()).toEqual(['c0', 'c1']))
  })

  it('delivers a command once that left its queue in a lost reply', async () => {
    const { dispatcher, other } = pair({ ...PATIENT, ackTimeoutMs: 60_000, maxDeliveriesPerClient: 1 })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    for (const id of ['c0', 'c1', 'c2']) await other.dispatch(command(id, { deadline_ms: 600_000, max_attempts: 1 }))
    await tab.got(3)
    const hold = connection(() => new Promise(() => {}))
    await dispatcher.attach(second, hold.deliver)
    for (const id of ['c3', 'c4']) await other.dispatch(command(id, { deadline_ms: 600_000, max_attempts: 1 }))
    await hold.got(1)
    void plan.meet('lost', runsOf('report'))
    await expect(dispatcher.settle({ ...key('c3'), state: 'resulted' })).rejects.toMatchObject({ code: 'unavailable' })
    await hold.got(2)
    expect(hold.ids()).toEqual(['c3', 'c4'])
    expect((await dispatcher.inspector.status(key('c4'), ASK))?.attempts?.count).toBe(1)
  })

  it('returns commands to the queue that a waiter was given in a lost reply before its detach', async () => {
    const { dispatcher } = pair({ ...PATIENT, ackTimeoutMs: 600_000 })
    const tab = connection()
    const waiter = await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c0', { client_id: 'away' }))
    const held = plan.meet('held', runsOf('admit'))
    const admission = dispatcher.dispatch(command('c1', { max_attempts: 1, deadline_ms: 600_000 }))
    await held
    await waiter.detach()
    await plan.release()
    expect((await admission).terminal).toBeNull()
    const next = connection()
    await dispatcher.attach(second, next.deliver)
    await next.got(1)
    expect(next.received[0]?.attempt).toBe(1)
    expect(tab.ids()).toEqual([])
    expect(await dispatcher.inspector.status(key('c1'), ASK)).toMatchObject({
      attempts: { count: 1 },
      recovery: { count: 0 },
    })
  })

  it('delivers a command once whose admission the Redis client resends after a reconnect', async () => {
    const { dispatcher } = pair({ ...PATIENT, ackTimeoutMs: 60_000 })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c0'))
    void plan.meet('resent', runsOf('admit'))
    expect((await dispatcher.dispatch(command('c1', { max_attempts: 1 }))).attempts.count).toBe(1)
    await tab.got(2)
    // If the Redis client reports that it reconnected, the node synchronises at once; otherwise with its next pass.
    await dispatcher.reconcile()
    expect(tab.ids()).toEqual(['c0', 'c1'])
  })

  it('never lets a late attach take the mailbox from a newer waiter', async () => {
    // The fence rejects it after two seconds. Here it arrives before that.
    const { dispatcher, other } = pair({ commandTimeoutMs: 10_000 })
    const late = plan.meet('late', runsOf('attach'))
    const former = Promise.resolve(dispatcher.attach(first, () => {})).catch((error) => error.code)
    await late
    expect(await former).toBe('unavailable')
    const tab = connection()
    await other.attach(first, tab.deliver)
    await plan.release()
    await dispatcher.dispatch(command('c1', { require_waiter: true }))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('ignores a late attach that arrives after its own detach', async () => {
    const { deploymentId, dispatcher } = pair({ commandTimeoutMs: 10_000 })
    const late = plan.meet('late', runsOf('attach'))
    await Promise.all([late, expect(dispatcher.attach(first, () => {})).rejects.toThrow()])
    await dispatcher.reconcile()
    await soon(() => expect(plan.seen.filter(runsOf('detach'))).not.toHaveLength(0))
    await soon(async () =>
      expect(await server().cli('EXISTS', `relayscope:{${deploymentId}:0}:delivery:detached:ada:tab`)).toBe('1'),
    )
    await plan.release()
    expect(await server().cli('HEXISTS', `relayscope:{${deploymentId}:0}:delivery:waiters`, 'ada:tab')).toBe('0')
  })

  it.each([
    'settle',
    'cancel',
    'acknowledge',
  ] as const)('%s returns the same result if the Redis client resends it after a reconnect', async (name) => {
    const { dispatcher } = pair(PATIENT)
    const end = (id: string) =>
      name === 'settle'
        ? dispatcher.settle({ ...key(id), state: 'resulted' })
        : name === 'cancel'
          ? dispatcher.cancel(key(id))
          : dispatcher.acknowledge({ ...first, command_id: id, state: 'refused' })
    await dispatcher.attach(first, connection().deliver)
    // The script is loaded by then, so that the resent call is the one that ran.
    for (const id of ['c1', 'c2', 'c3']) await dispatcher.dispatch(command(id))
    expect(await end('c1')).toBe(true)
    void plan.meet('resent', runsOf('report'))
    expect(await end('c2')).toBe(true)
    expect(await end('c2')).toBe(false)
    void plan.meet('resent', runsOf('report'))
    expect(await end('c1')).toBe(false)
  })

  it('aborts the signal of a cancelled command even if the reply to cancel was lost', async () => {
    const { dispatcher } = pair(PATIENT)
    const signals: AbortSignal[] = []
    await dispatcher.attach(first, (_, { signal }) => {
      signals.push(signal)
      return new Promise(() => {})
    })
    await dispatcher.dispatch(command('c1'))
    await soon(() => expect(signals).toHaveLength(1))
    void plan.meet('lost', runsOf('report'))
    await expect(dispatcher.cancel(key('c1'))).rejects.toMatchObject({ code: 'unavailable' })
    await dispatcher.reconcile()
    expect(signals[0]?.aborted).toBe(true)
  })

  it('attaches waiters that the store lost again with its next pass', async () => {
    const { deploymentId, dispatcher } = pair(PATIENT)
    const waiters = `relayscope:{${deploymentId}:0}:delivery:waiters`
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await server().cli('DEL', waiters)
    await dispatcher.reconcile()
    expect(await server().cli('HEXISTS', waiters, 'ada:tab')).toBe('1')
    expect((await dispatcher.dispatch(command('c1', { require_waiter: true }))).terminal).toBeNull()
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  for (const fault of ['lost', 'repeated', 'late'] as const)
    for (const [name, step] of Object.entries({
      reserve: 'reserve',
      admit: 'admit',
      end: 'report',
      release: 'release',
    } as const))
      it(`leaks no reservation in another shard past its deadline (${name} ${fault})`, async () => {
        const { deploymentId, dispatcher, other } = pair({ shards: 5 })
        const scope_id = ['red', 'green', 'blue', 'black'].find((scope) => shardOf(scope, 5) !== shardOf('ada', 5))
        void plan.meet(fault, runsOf(step))
        await again(() => dispatcher.dispatch(command('c1', { scope_id, deadline_ms: 1_500 })))
        expect((await other.inspector.listTenants(FIRST, ASK)).items).toMatchObject([
          { scope_id, reserved_commands: 1 },
        ])
        await again(() => dispatcher.cancel(key('c1')))
        await plan.release()
        await soon(async () => expect(await reserved(deploymentId)).toBe(0))
      })
})
