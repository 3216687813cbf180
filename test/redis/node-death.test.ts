/** A node that dies between any two commands to the store: nothing admitted is lost, no reservation outlives its deadline. */
import { expect, it } from 'vitest'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { ASK, createClock, walk } from '../contract/clock.js'
import { describeNode, type NodeSubject } from './dispatcher-node.js'
import { clients } from './server.js'

/** More commands to the store than a delivery takes from its attach to its end. */
const STEPS = 12
const SHARDS = 4
const DEADLINE_MS = 60_000
const ACK_TIMEOUT_MS = 400
/** How long a node counts as alive, and how long another must have seen that it does not. */
const LEASE_MS = 5_000
const SUSPECT_MS = 2_000

const key = { user_id: 'ada', client_id: 'tab', command_id: 'c1' }
// A scope of another shard than the user's: reservation and admission are two steps.
const command = { ...key, action: 'work', scope_id: 'team', deadline_ms: DEADLINE_MS }
const ends = Array.from({ length: STEPS }, (_, i) => i + 1).flatMap((last) => [
  { last, isRun: false },
  { last, isRun: true },
])
/** On a busy machine a slow reply is not a lost one. */
const COMMAND_TIMEOUT_MS = 20_000

interface End {
  /** The number of the last command that the node sends. */
  last: number
  /** Whether the store runs it. */
  isRun: boolean
}

/** A client that falls silent with the `last`-th command from `arm()` on. */
function mortal(client: RedisClient, { last, isRun }: End) {
  const target = client as unknown as { call(...args: string[]): Promise<unknown> }
  let left = Number.POSITIVE_INFINITY
  let die = () => {}
  const died = new Promise<void>((resolve) => {
    die = resolve
  })
  let bury = () => {}
  const buried = new Promise<never>((_, reject) => {
    bury = () => reject(new Error('the node is dead'))
  })
  buried.catch(() => {})
  async function call(...args: string[]) {
    left--
    if (left > 0) return target.call(...args)
    if (left === 0 && isRun) await target.call(...args)
    die()
    return buried
  }
  return {
    client: new Proxy(client, {
      get(own, name) {
        const value = Reflect.get(own, name, own)
        if (name === 'call') return call
        return typeof value === 'function' ? value.bind(own) : value
      },
    }),
    died,
    arm() {
      left = last
    },
    /** Makes everything that the dead node waits for fail, so that its objects can be closed. */
    close: bury,
  }
}

function createWorld({ client, observe, server }: NodeSubject, name: string) {
  const deploymentId = name
  const clock = createClock()
  const open: (() => unknown)[] = []
  const options = {
    deploymentId,
    now: clock.now,
    commandTimeoutMs: COMMAND_TIMEOUT_MS,
    ackTimeoutMs: ACK_TIMEOUT_MS,
    maxAttempts: 100,
    onError: null,
  }
  const delivery = observe(deploymentId, { now: clock.now, commandTimeoutMs: COMMAND_TIMEOUT_MS })
  return {
    clock,
    // The number of shards is the first writer's.
    prepare: () => server().cli('SET', `relayscope:{${deploymentId}:0}:shards`, String(SHARDS)),
    /** Creates a started node, which dies as `end` specifies. */
    async victim(end: End) {
      const connected = await clients.ioredis([server().port])
      const { died, arm, close, client: dying } = mortal(connected.client, end)
      const node = createRedisCommandDispatcher({ ...options, client: dying, nodeId: 'victim' })
      open.push(connected.close, node.close, close)
      await node.reconcile()
      arm()
      let isDead = false
      void died.then(() => {
        isDead = true
      })
      return {
        node,
        /** Lets its loop run until it reaches its step. */
        async death() {
          while (!isDead) await Promise.race([died, node.reconcile().catch(() => {})])
        },
      }
    },
    survivor() {
      const node = createRedisCommandDispatcher({ ...options, client: client(), nodeId: 'survivor' })
      open.push(node.close)
      return node
    },
    async close() {
      for (const close of open.reverse()) await close()
    },
    status: () => delivery.status(key, ASK),
    tenants: () => walk((page) => delivery.listTenants(page, ASK)),
  }
}

describeNode('the death of a node', (subject) => {
  /** Runs all ends concurrently, each in its own deployment. */
  const each = (name: string, check: (world: ReturnType<typeof createWorld>, end: End) => Promise<void>) =>
    Promise.all(
      ends.map(async (end) => {
        const world = createWorld(subject, `${name}-${end.last}-${end.isRun}`)
        try {
          await world.prepare()
          await check(world, end)
        } catch (cause) {
          throw new Error(`command ${end.last}, ${end.isRun ? 'run' : 'not run'}: ${cause}`, { cause })
        } finally {
          await world.close()
        }
      }),
    )

  it('at any step of an admission leaves a complete command, or nothing past its deadline', () =>
    each('admit', async (world, end) => {
      const { node, death } = await world.victim(end)
      const admitting = (async () => node.dispatch(command))()
      admitting.catch(() => {})
      await death()
      const left = await world.status()
      // A command without its reservation must never exist.
      if (left) expect((await world.tenants()).map((tenant) => tenant.reserved_commands)).toEqual([1])
      world.clock.advance(DEADLINE_MS)
      await world.survivor().reconcile()
      const state = (await world.status())?.terminal?.state
      expect([state, await world.tenants()]).toEqual([left ? 'expired' : undefined, []])
    }))

  it('at any step of a delivery lets the next node end the command', () =>
    each('deliver', async (world, end) => {
      const survivor = world.survivor()
      await survivor.dispatch(command)
      const { node, death } = await world.victim(end)
      const first = { user_id: key.user_id, client_id: key.client_id, instance_id: 'i1' }
      const attaching = (async () =>
        node.attach(first, async () => {
          await node.acknowledge({ ...key, instance_id: 'i1' })
          await node.settle({ ...key, state: 'resulted' })
        }))()
      attaching.catch(() => {})
      await death()
      const left = await world.status()
      let reach = () => {}
      const reached = new Promise<void>((resolve) => {
        reach = resolve
      })
      await survivor.attach({ ...first, instance_id: 'i2' }, () => reach())
      if (left?.terminal === null && left.acknowledgement?.state === 'none') {
        // What was in its hand comes back when its lease is over, and another node has seen that for a while.
        for (const ms of [LEASE_MS, SUSPECT_MS]) {
          world.clock.advance(ms)
          await survivor.reconcile()
        }
        await reached
      }
      // An acknowledged command is never delivered again: then only the client can end it.
      if (left?.terminal === null) expect(await survivor.settle({ ...key, state: 'resulted' })).toBe(true)
      expect((await world.status())?.terminal?.state).toBe('resulted')
      // It may have died after the end and before the release in another shard: that leaves the place to the deadline.
      world.clock.advance(DEADLINE_MS)
      await survivor.reconcile()
      expect(await world.tenants()).toEqual([])
    }))
})
