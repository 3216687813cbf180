/**
 * A store that is connected but does not reply: everything can be closed, and reports what the store did not confirm.
 */
import { expect, it, onTestFinished } from 'vitest'
import { sleep } from '../../src/internal/async/timer.js'
import {
  createRedisEventBus,
  createRedisFacilities,
  createRedisSessionRegistry,
  createRedisSiteRegistry,
} from '../../src/redis/index.js'
import { listIn, stream } from '../contract/subscriptions.js'
import { clients, describeRedis, startServer } from './server.js'
import { soon } from './wait-for.js'

// So many that the batches take longer than the test lasts.
const WAITERS = 1_500
const CALLS = 3
/** 15 batches that each wait for it are 75 seconds. */
const COMMAND_TIMEOUT_MS = 5_000
/** Far above the bound of an ending on any machine, and below those. */
const HANGS_MS = 60_000

describeRedis('with a store that does not reply', () => {
  // One server for each, because it is paused.
  for (const name of ['node-redis', 'ioredis'] as const)
    it.concurrent(`every facility ends, by ${name}`, async ({ expect, onTestFinished }) => {
      const server = await startServer()
      const { client, close } = await clients[name]([server.port])
      onTestFinished(async () => {
        server.resume()
        await close()
        await server.stop()
      })
      const shared = { client, deploymentId: `silent-${name}`, commandTimeoutMs: COMMAND_TIMEOUT_MS, onError: () => {} }
      let spilled = () => {}
      const isSpilling = new Promise<void>((resolve) => (spilled = resolve))
      const spill = {
        put: () => {
          spilled()
          return new Promise<never>(() => {})
        },
        get: () => new Promise<never>(() => {}),
        delete: () => new Promise<never>(() => {}),
      }
      const facilities = createRedisFacilities({ ...shared, spill })
      const { connections, dispatcher, ingest, rpc } = facilities
      const bus = createRedisEventBus(shared)
      const sessions = createRedisSessionRegistry({ ...shared, sites: createRedisSiteRegistry(shared) })

      const at = (i: number) => ({ user_id: `u${i % 8}`, client_id: `c${i}`, instance_id: 'i' })
      // A few at a time, so that none waits longer than a command's timeout on a busy machine.
      for (let i = 0; i < WAITERS; i += 20)
        await Promise.all(
          Array.from({ length: 20 }, async (_, j) => {
            await connections.connect({ ...at(i + j), client_type: 'console' })
            // It receives a command and never acknowledges it.
            await dispatcher.attach(at(i + j), () => new Promise(() => {}))
          }),
        )
      await dispatcher.dispatch({ user_id: 'u0', client_id: 'c0', command_id: 'taken', action: 'x' })
      const calls = await Promise.all(Array.from({ length: CALLS }, () => rpc.open({ ...at(1), action: 'a' })))
      const subscription = bus.subscribe('users/u0/sites/s/events')
      await bus.prepare('users/u0/sites/s/events')
      sessions.watch?.('missing', () => {})
      facilities.subscriptions.add(stream('shown'))
      await soon(async () => expect(await listIn(facilities.subscriptions)).toHaveLength(1))
      const large = { text: 'x'.repeat(131_072) }
      void ingest({ ...at(2), message_id: 'm', stream: 's', kind: 'event', payload: large }).catch(() => {})
      await isSpilling

      server.pause()
      const lost = (async () =>
        dispatcher.dispatch({ user_id: 'u1', client_id: 'c1', command_id: 'lost', action: 'x' }))()
      const isLost = expect(lost).rejects.toMatchObject({ code: 'unavailable' })
      const hasEnded = new AbortController()
      const ending = async () => {
        await Promise.all([bus.close(), sessions.disconnect()])
        expect(subscription.closed).toBe(true)
        return facilities.close()
      }
      const ended = await Promise.race([ending(), sleep(HANGS_MS, hasEnded.signal)])
      hasEnded.abort()
      expect(ended).toEqual({ aborted: WAITERS + CALLS })
      for (const { result } of calls) await expect(result).rejects.toMatchObject({ code: 'closed' })
      await isLost
    })

  it('removes every viewer stream from a working store, and lists none afterwards', async () => {
    const server = await startServer()
    const { client, close } = await clients['node-redis']([server.port])
    onTestFinished(async () => {
      await close()
      await server.stop()
    })
    const shared = { client, deploymentId: 'streams', onError: null }
    const [ended, other] = [createRedisFacilities(shared), createRedisFacilities(shared)]
    onTestFinished(async () => void (await other.close()))
    const ids = async () => (await listIn(other.subscriptions)).map(({ subscription_id }) => subscription_id)
    ended.subscriptions.add(stream('one'))
    await soon(async () => expect(await ids()).toEqual(['one']))
    await ended.close()
    expect(await ids()).toEqual([])
    ended.subscriptions.add(stream('late'))
    other.subscriptions.add(stream('two'))
    await soon(async () => expect(await ids()).toContain('two'))
    expect(await ids()).toEqual(['two'])
    expect(await ended.close()).toEqual({ aborted: 0 })
  })

  it('reports nothing about a working store', async () => {
    const server = await startServer()
    const { client, close } = await clients['node-redis']([server.port])
    onTestFinished(async () => {
      await close()
      await server.stop()
    })
    const { connections, dispatcher, rpc, ...facilities } = createRedisFacilities({
      client,
      deploymentId: 'heard',
      onError: null,
    })
    const who = { user_id: 'u', client_id: 'c', instance_id: 'i' }
    await connections.connect({ ...who, client_type: 'console' })
    await dispatcher.attach(who, () => {})
    const { result } = await rpc.open({ user_id: 'u', client_id: 'c', action: 'a' })
    expect(await facilities.close()).toEqual({ aborted: 0 })
    await expect(result).rejects.toMatchObject({ code: 'closed' })
  })
})
