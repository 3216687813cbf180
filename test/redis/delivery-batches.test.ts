/** Calls of one turn of the event loop share a run of the store, and each behaves as if it ran alone. */
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import type { CommandFilter } from '../../src/internal/contract/delivery.js'
import type { Step } from '../../src/redis/delivery/steps.js'
import { keyOf, shardPrefix } from '../../src/redis/store/keys.js'
import { ASK, walk } from '../contract/clock.js'
import { command, connection, first, key } from '../contract/delivery-commands.js'
import { runsOf } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { soon } from './wait-for.js'

const connectAs = (port: number, username: string) => new Redis({ port, username, password: 'secret' })

const AT_ONCE = 64
/** More steps than one run has. */
const MANY = 100
const ids = Array.from({ length: MANY }, (_, i) => `c${i}`)
const long = { deadline_ms: 600_000 }

describeNode('calls of one turn', ({ client, keep, make, observe, server }) => {
  function open(options = {}) {
    const { client: lossy, plan } = lossyClient(client())
    const made = make({ client: lossy, capacity: 1_000, ...options })
    const runs = (step: Step) => plan.seen.filter(runsOf(step)).length
    const commands = async (filter: CommandFilter = {}) => {
      const { listCommands } = observe(made.deploymentId)
      if (!listCommands) throw new Error('the inspector lists no commands')
      return walk((page) => listCommands(filter, page, ASK))
    }
    const place = (...parts: string[]) => keyOf(shardPrefix(made.deploymentId, 0), ['delivery', ...parts])
    return { ...made, plan, runs, commands, place }
  }

  it('share runs of a bounded size, and each gets its own result', async () => {
    const { deploymentId, dispatcher, runs, commands, plan } = open()
    await dispatcher.dispatch(command('first', long))
    plan.forget()
    const answers = await Promise.all(ids.map((id) => dispatcher.dispatch(command(id, long))))
    expect(answers.map(({ command_id }) => command_id)).toEqual(ids)
    expect(runs('admit')).toBe(Math.ceil(MANY / AT_ONCE))
    expect((await commands()).map(({ command_id }) => command_id)).toEqual(['first', ...ids])
    plan.forget()
    const said = await Promise.all(ids.map((id) => dispatcher.settle({ ...key(id), state: 'resulted' })))
    expect(said).toEqual(ids.map(() => true))
    expect(runs('report')).toBe(Math.ceil(MANY / AT_ONCE))
    expect((await observe(deploymentId).summary(ASK)).tracked_commands).toBe(1)
  })

  it.each([
    ['all users', { maxTracked: 5 }, 'overloaded'],
    ['their user', { maxTrackedPerUser: 5 }, 'capacity_exceeded'],
  ])('count for %s from one to the next', async (_whose, bounds, reason) => {
    const { dispatcher } = open(bounds)
    await dispatcher.dispatch(command('first', long))
    const answers = await Promise.all(ids.slice(0, 10).map((id) => dispatcher.dispatch(command(id, long))))
    expect(answers.map(({ terminal }) => terminal?.reason ?? 'admitted')).toEqual([
      ...Array(4).fill('admitted'),
      ...Array(6).fill(reason),
    ])
    await dispatcher.settle({ ...key('first'), state: 'resulted' })
    expect((await dispatcher.dispatch(command('next', long))).terminal).toBeNull()
  })

  it('each get their own error', async () => {
    const { dispatcher } = open({ capacity: 2 })
    await dispatcher.dispatch(command('c1', { payload: 1, ...long }))
    const said = await Promise.all([
      dispatcher.dispatch(command('c1', { payload: 2, ...long })).catch((error) => error.code),
      dispatcher.dispatch(command('c2', long)),
      dispatcher.dispatch(command('c3', long)),
      dispatcher.dispatch(command('c1', { payload: 1, ...long })),
    ])
    expect(said).toMatchObject([
      'command_conflict',
      { admission: { state: 'admitted' } },
      { admission: { state: 'rejected' }, terminal: { reason: 'capacity_exceeded' } },
      { admission: { state: 'admitted' } },
    ])
  })

  it('fail alone if another application overwrote their key', async () => {
    const { dispatcher, place } = open({ onError: null })
    await dispatcher.dispatch(command('c0', long))
    await server().cli('RPUSH', place('command', 'eve', 'tab', 'c2'), 'foreign')
    const said = await Promise.all([
      dispatcher.dispatch(command('c1', long)),
      dispatcher.dispatch({ ...command('c2', long), user_id: 'eve' }).catch(({ code, outcome }) => [code, outcome]),
    ])
    expect(said).toMatchObject([{ admission: { state: 'admitted' } }, ['unavailable', 'unknown']])
  })

  it('end a command once, even if two of them end the same command', async () => {
    const { dispatcher, commands } = open()
    await dispatcher.attach(first, connection().deliver)
    await Promise.all(ids.map((id) => dispatcher.dispatch(command(id, long))))
    const said = await Promise.all(
      ids.flatMap((id) => [
        dispatcher.settle({ ...key(id), state: 'resulted' }),
        dispatcher.cancel(key(id)),
        dispatcher.settle({ ...key(id), state: 'failed' }),
      ]),
    )
    expect(said).toEqual(ids.flatMap(() => [true, false, false]))
    expect(await commands({ state: 'resulted' })).toHaveLength(MANY)
  })

  it('fill a run up to its maximum size, and larger ones run alone', async () => {
    const { dispatcher, runs, plan } = open()
    await dispatcher.dispatch(command('first', long))
    plan.forget()
    // The limit is in bytes, not characters: four of these are below 256 KiB.
    for (const payload of ['x'.repeat(60_000), '€'.repeat(20_000)]) {
      plan.forget()
      const own = ids.slice(0, 10).map((id) => `${id} ${payload[0]}`)
      await Promise.all(own.map((id) => dispatcher.dispatch(command(id, { payload, ...long }))))
      expect(runs('admit')).toBe(3)
    }
  })

  it('include acknowledgements and other kinds of steps', async () => {
    const { dispatcher, runs, plan } = open()
    const tabs = ids.map((client_id) => ({ ...connection(), instance: { ...first, client_id } }))
    await Promise.all(tabs.map(({ instance, deliver }) => dispatcher.attach(instance, deliver)))
    await dispatcher.reconcile()
    plan.forget()
    const each = (n: number) => ({ ...command('c', long), client_id: ids[n] as string })
    await Promise.all(ids.map((_, n) => dispatcher.dispatch(each(n))))
    await soon(() => expect(tabs.map((tab) => tab.ids())).toEqual(ids.map(() => ['c'])))
    expect(runs('admit')).toBe(Math.ceil(MANY / AT_ONCE))
    plan.forget()
    const acknowledge = ({ instance }: (typeof tabs)[number]) =>
      dispatcher.acknowledge({ ...instance, command_id: 'c' })
    const said = await Promise.all([
      ...tabs.slice(1).map(acknowledge),
      dispatcher.cancel({ ...key('c'), client_id: each(0).client_id }),
    ])
    expect(said).toEqual(ids.map(() => true))
    expect(runs('report')).toBe(Math.ceil(MANY / AT_ONCE))
  })

  it('use scripts if the ACL allows no functions', async () => {
    const user = `plain${Math.random()}`.replace('.', '')
    await server().cli('ACL', 'SETUSER', user, 'on', '>secret', '~*', '&*', '+@all', '-function', '-fcall')
    const plain = await connectAs(server().port, user)
    const { client: lossy, plan } = lossyClient(plain)
    const { dispatcher } = make({ client: lossy })
    keep({ close: () => plain.disconnect() })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1', long))
    await tab.got(1)
    expect(await dispatcher.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
    const named = (name: string) => plan.seen.filter(([verb, , , , head]) => verb === name && head?.includes('\0'))
    expect(named('FCALL').length).toBeLessThan(4)
    expect(named('EVALSHA').length).toBeGreaterThan(3)
  })
})
