/** What tests rely on when they lose replies: that exactly the planned command meets exactly the planned fault. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defineScript } from '../../src/redis/store/script.js'
import { createStore, type Store } from '../../src/redis/store/store.js'
import { lossyClient } from './lossy-client.js'
import { named, type Plan, runsOf } from './lossy-plan.js'
import { startLossyStore } from './lossy-store.js'
import { clients, describeRedis, type Server, startServer } from './server.js'

const COUNT = 'relayscope:{d:0}:n'

describeRedis('injected faults', () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.stop())
  beforeEach(() => server.cli('DEL', COUNT))

  const ways = {
    'by the client': async (kind: 'node-redis' | 'ioredis') => {
      const connected = await clients[kind]([server.port])
      return { ...lossyClient(connected.client), close: connected.close }
    },
    'before the store': async (kind: 'node-redis' | 'ioredis') => {
      const lossy = await startLossyStore(server.port)
      const connected = await clients[kind]([lossy.port])
      const close = async () => {
        await connected.close()
        await lossy.close()
      }
      return { client: connected.client, plan: lossy.plan, close }
    },
  }

  for (const [way, open] of Object.entries(ways))
    for (const kind of ['node-redis', 'ioredis'] as const)
      describe(`${way}, over ${kind}`, () => {
        /** A store with a short timeout, and one that never times out. */
        let hasty: Store
        let store: Store
        let plan: Plan
        let close: () => Promise<void>
        beforeEach(async () => {
          const opened = await open(kind)
          ;({ plan, close } = opened)
          const where = { client: opened.client, deploymentId: 'd' }
          hasty = createStore({ ...where, commandTimeoutMs: 1_000 })
          store = createStore({ ...where, commandTimeoutMs: 60_000 })
        })
        afterEach(() => close())
        const incr = (by = store) => by.command(['INCR', COUNT], COUNT)
        const stored = () => server.cli('GET', COUNT)
        // With its connection cut, ioredis sends a command again that it had sent.
        const isSentAgain = way === 'before the store' && kind === 'ioredis'

        it('runs a command whose reply is lost', async () => {
          const happened = plan.meet('lost', named('incr'))
          await (isSentAgain
            ? expect(incr()).resolves.toBe(2)
            : expect(incr(hasty)).rejects.toMatchObject({ code: 'unavailable' }))
          await happened
          expect(await stored()).toBe(isSentAgain ? '2' : '1')
        })

        it('holds a reply until it is released', async () => {
          const happened = plan.meet('held', named('incr'))
          const reply = incr()
          await happened
          expect(await stored()).toBe('1')
          await plan.release()
          expect(await reply).toBe(1)
          expect(await incr()).toBe(2)
        })

        it('runs a late command after its caller has timed out', async () => {
          const happened = plan.meet('late', named('incr'))
          const reply = incr(isSentAgain ? store : hasty).catch(() => 'gone')
          await happened
          expect(await reply).toBe(isSentAgain ? 1 : 'gone')
          await plan.release()
          expect(await stored()).toBe(isSentAgain ? '2' : '1')
        })

        it('runs a repeated command twice, and never runs an unsent one', async () => {
          await Promise.all([plan.meet('repeated', named('incr')), incr()])
          expect(await incr()).toBe(3)
          const happened = plan.meet('unsent', named('incr'), 2)
          expect(await incr()).toBe(4)
          await incr(hasty).catch(() => {})
          await happened
          expect(await stored()).toBe(isSentAgain ? '5' : '4')
        })

        it('distinguishes the runs of a script from others', async () => {
          const script = defineScript(
            'test.count',
            { args: [], answer: Number },
            "return redis.call('INCR', KEYS[1] .. 'n')",
          )
          const matches = await runsOf(script)
          plan.forget()
          await server.cli('SET', 'relayscope:{d:0}:shards', '1')
          const rest = ['1', 'relayscope:{d:0}:', ` ${Date.now() + 60_000} 1`]
          await store.command(['EVAL', script.source, ...rest], COUNT)
          await store.command(['EVALSHA', await script.digest, ...rest], COUNT)
          await store.command(['EVAL', 'return 1', '0'], COUNT)
          expect(plan.seen.filter(matches)).toHaveLength(2)
        })
      })
})
