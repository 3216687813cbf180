/** The real client of ioredis, which resends commands when its connection is lost: nothing is done twice. */
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createRedisFacilities, type RedisFacilities } from '../../src/redis/composition/facilities.js'
import { CONNECT } from '../../src/redis/connections/facility.js'
import type { Step } from '../../src/redis/delivery/steps.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import { PUBLISH } from '../../src/redis/event-bus/topics.js'
import { INGEST_MESSAGE } from '../../src/redis/history/facility.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { ASK, FIRST, walk } from '../contract/clock.js'
import { command, connection, first, key } from '../contract/delivery-commands.js'
import { collect, dataOf, event } from '../contract/event-bus.js'
import { runsOf as stepsOf } from './delivery-shard.js'
import { runsOf } from './lossy-plan.js'
import { type LossyStore, startLossyStore } from './lossy-store.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

/** `far` is a node whose connection is cut, `near` one without a proxy. */
interface World {
  far: RedisFacilities
  near: RedisFacilities
  bus: ReturnType<typeof createRedisEventBus>
  source: ReturnType<typeof createRedisEventBus>
}

/** The preparation, the command that is sent twice, and the expected state, including the result of `act`. */
interface Case {
  script: ScriptText | Step
  act: (world: World) => Promise<(world: World) => unknown>
  check: (world: World, answer: unknown) => Promise<unknown>
}

const long = { deadline_ms: 600_000, max_attempts: 50 }
const message = { ...first, message_id: 'm', stream: 'log', kind: 'event' as const, payload: 1 }
const statusOf = ({ near }: World) => near.dispatcher.inspector.status(key('c1'), ASK)
const reserved = async ({ near }: World) =>
  (await near.dispatcher.inspector.listTenants(FIRST, ASK)).items.map((scope) => scope.reserved_commands)

async function waiting({ far }: World) {
  await far.connections.connect({ ...first, client_type: 'web' })
  const tab = connection()
  await far.dispatcher.attach(first, tab.deliver)
  return tab
}

/** Checks that each command was delivered once. One that the node fetches after a lost reply may arrive after the next one. */
async function handedOverOnce(world: World, { ids }: ReturnType<typeof connection>) {
  await world.near.dispatcher.dispatch(command('next', long))
  await soon(() => expect(ids().toSorted()).toEqual(['c1', 'next']))
}

let tab: ReturnType<typeof connection>
const CASES: Record<string, Case> = {
  'a connect': {
    script: CONNECT,
    act: async () => (world) => world.far.connections.connect({ ...first, client_type: 'web' }),
    async check({ near }) {
      const all = await walk((page) => near.connections.inspector.listConnections({}, page, ASK))
      expect(all.map(({ status }) => status)).toEqual(['connected'])
    },
  },
  'an attach': {
    script: 'attach',
    async act(world) {
      await world.far.connections.connect({ ...first, client_type: 'web' })
      await world.near.dispatcher.dispatch(command('c1', long))
      tab = connection()
      return () => world.far.dispatcher.attach(first, tab.deliver)
    },
    check: (world) => handedOverOnce(world, tab),
  },
  'a publication': {
    script: PUBLISH,
    async act({ source }) {
      await source.prepare('t')
      return ({ bus }) => bus.publish('t', event(1))
    },
    async check({ source }) {
      const reader = source.subscribe('t')
      await source.prepare('t')
      expect(reader.position.seq).toBe(1)
      await source.publish('t', event(2))
      expect(dataOf(await collect(reader, 1))).toEqual([2])
    },
  },
  'an ingest': {
    script: INGEST_MESSAGE,
    async act({ far }) {
      await far.connections.connect({ ...first, client_type: 'web' })
      return () => far.ingest(message)
    },
    async check({ near }, answer) {
      expect(answer).toEqual({ accepted: true, duplicate: false })
      const { items } = await near.history.inspector.readMessages({ stream: 'users/ada/log', limit: 9 }, ASK)
      expect(items.map(({ message_id, sequence }) => [message_id, sequence])).toEqual([['m', 1]])
      expect(await near.deduplicator.inspector.summary(ASK)).toMatchObject({ entries: 1, accepted: 1, duplicates: 0 })
    },
  },
  'a dispatch': {
    script: 'admit',
    async act(world) {
      tab = await waiting(world)
      return () => world.far.dispatcher.dispatch(command('c1', long))
    },
    async check(world, answer) {
      expect(answer).toMatchObject({ admission: { state: 'admitted' } })
      await handedOverOnce(world, tab)
      expect(await reserved(world)).toEqual([2])
    },
  },
  'an acknowledgement': {
    script: 'report',
    async act(world) {
      tab = await waiting(world)
      await world.near.dispatcher.dispatch(command('c1', long))
      await tab.got(1)
      return () => world.far.dispatcher.acknowledge({ ...first, command_id: 'c1' })
    },
    async check(world, answer) {
      expect(answer).toBe(true)
      expect(await statusOf(world)).toMatchObject({ acknowledgement: { state: 'acknowledged' } })
    },
  },
  'an end': {
    script: 'report',
    async act(world) {
      await world.near.dispatcher.dispatch(command('c1', long))
      return () => world.far.dispatcher.settle({ ...key('c1'), state: 'resulted' })
    },
    async check(world) {
      expect(await statusOf(world)).toMatchObject({ terminal: { state: 'resulted' } })
      expect(await reserved(world)).toEqual([])
    },
  },
}

describeRedis('commands that ioredis resends after a lost connection', () => {
  let server: Server
  let direct: Connected
  let lossy: LossyStore
  let cut: Connected
  beforeAll(async () => {
    server = await startServer()
    direct = await clients.ioredis([server.port])
    lossy = await startLossyStore(server.port)
    cut = await clients.ioredis([lossy.port])
  })
  afterAll(async () => {
    await Promise.all([direct?.close(), cut?.close()])
    await lossy?.close()
    await server?.stop()
  })

  it.each(Object.entries(CASES))('runs %s once, and returns the result of one run', async (name, one) => {
    const deploymentId = `resent-${name.replaceAll(' ', '-')}`
    // Early enough to do harm: it has not timed out when it arrives again.
    const [there, here] = [cut, direct].map(({ client }) => ({ client, deploymentId, commandTimeoutMs: 20_000 }))
    const [far, near] = [there, here].map((options) => createRedisFacilities(options as never))
    const [bus, source] = [there, here].map((options) => createRedisEventBus(options as never))
    const world = { far, near, bus, source } as World
    onTestFinished(async () => void (await Promise.all([far, near, bus, source].map((part) => part?.close()))))
    const send = await one.act(world)
    const { script } = one
    const isStep = typeof script === 'string'
    if (!isStep) await server.cli('SCRIPT', 'LOAD', script.source)
    const matches = isStep ? stepsOf(script) : await runsOf(script)
    lossy.plan.forget()
    const met = lossy.plan.meet('lost', (args) => ['EVALSHA', 'FCALL'].includes(args[0] ?? '') && matches(args))
    const answer = await send(world)
    await met
    const arrivals = () => lossy.plan.seen.filter(matches).map((args) => JSON.stringify(args))
    await soon(() => expect(arrivals().filter((args) => args === arrivals()[0])).toHaveLength(2))
    await one.check(world, answer)
  })
})
