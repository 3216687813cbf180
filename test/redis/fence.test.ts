/**
 * A write that timed out never runs later, and the reported outcome of a failed write is correct, with both clients.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Refusal, wasNotRun } from '../../src/internal/refusal.js'
import { createFence } from '../../src/redis/store/fence.js'
import { Late } from '../../src/redis/store/reply.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

afterEach(() => void vi.restoreAllMocks())

const SET = defineScript(
  'test.set',
  { args: [], answer: (reply) => reply },
  `redis.call('SET', K('made'), now) return 'made'`,
)
const HALFWAY = defineScript(
  'test.halfway',
  { args: [], answer: (reply) => reply },
  `redis.call('SET', K('made'), now) redis.call('INCR', K('list')) return 'made'`,
)

/** The instant of the store that a write would carry. */
function fenceOf(readTime: () => Promise<number>) {
  const fence = createFence(readTime)
  return { at: (clock: number, endsAt: number) => fence.run(clock, endsAt, async (ends) => ends) }
}

describe('a fence by the clock of the store', () => {
  it('is never later than the clock at the timeout, however slow the reply was', async () => {
    let local = 1_000
    vi.spyOn(performance, 'now').mockImplementation(() => local)
    const fence = fenceOf(async () => {
      const time = 50_000 + local
      // The reply is in transit.
      local += 700
      return time
    })
    expect(await fence.at(0, 4_000)).toBeLessThanOrEqual(54_000)
    expect(await fence.at(0, 4_000)).toBeGreaterThan(53_000)
  })

  it('is read once for many callers, and again after ten seconds', async () => {
    let local = 0
    vi.spyOn(performance, 'now').mockImplementation(() => local)
    const readTime = vi.fn(async () => local)
    const fence = fenceOf(readTime)
    await Promise.all(Array.from({ length: 50 }, () => fence.at(0, 2_000)))
    expect(readTime).toHaveBeenCalledTimes(1)
    local = 9_999
    await fence.at(0, 12_000)
    expect(readTime).toHaveBeenCalledTimes(1)
    local = 10_000
    await Promise.all(Array.from({ length: 50 }, () => fence.at(0, 12_000)))
    expect(readTime).toHaveBeenCalledTimes(2)
  })

  it.each([
    [false, 'not_run'],
    [true, 'unknown'],
  ])('has the right outcome for a late write of a client that resends: %s, reported as %s', async (resends, outcome) => {
    const fence = createFence(async () => performance.now(), resends)
    let sent = 0
    const write = async () => {
      if (++sent === 1) throw new Late(performance.now() + 1_000, undefined)
      throw new Refusal('unavailable', 'timed out before it was sent', { outcome: 'not_run' })
    }
    await expect(fence.run(0, performance.now() + 2_000, write)).rejects.toMatchObject({ outcome })
    expect(sent).toBe(2)
  })

  it('that cannot be read says of the write that it was not run, whatever became of the reading', async () => {
    const fence = createFence(async () => {
      throw new Refusal('unavailable', 'no answer', { outcome: 'unknown' })
    })
    const send = vi.fn(async () => 'made')
    const error = await fence.run(0, performance.now() + 1_000, send).catch((error: unknown) => error)
    expect([wasNotRun(error), error]).toEqual([true, expect.objectContaining({ code: 'unavailable' })])
    expect(send).not.toHaveBeenCalled()
  })

  it('reads again for a caller that waited for a reading which timed out before it', async () => {
    let local = 0
    vi.spyOn(performance, 'now').mockImplementation(() => local)
    let fail = () => {}
    const first = new Promise<number>((_, reject) => {
      fail = () => reject(new Error('no answer'))
    })
    const readTime = vi.fn(() => first)
    const fence = fenceOf(readTime)
    const early = fence.at(0, 2_000)
    local = 1_500
    const late = fence.at(0, 3_500)
    readTime.mockResolvedValueOnce(70_000)
    local = 2_000
    fail()
    await expect(early).rejects.toThrow('no answer')
    expect(await late).toBeGreaterThan(71_000)
  })
})

describeRedis('a write', () => {
  describe.each(['node-redis', 'ioredis'] as const)('over %s', (kind) => {
    let server: Server
    let connected: Connected
    let deployments = 0
    beforeAll(async () => {
      server = await startServer()
      connected = await clients[kind]([server.port])
    })
    afterAll(async () => {
      await connected.close()
      await server.stop()
    })
    const createOwn = (commandTimeoutMs?: number) => {
      deployments++
      const errors: unknown[] = []
      const deploymentId = `fence-${deployments}`
      const options = {
        client: connected.client,
        deploymentId,
        commandTimeoutMs,
        onError: (e: unknown) => errors.push(e),
      }
      const store = createStore(options)
      const key = store.key(0, 'made')
      return { store, errors, made: () => store.command(['GET', key], key) }
    }
    const fails = (work: Promise<unknown>) =>
      work.then(
        () => expect.fail('it ran'),
        (error: unknown) => error,
      )

    it('that a stalled store runs after its timeout does nothing, and is unknown until then', async () => {
      const { store, made } = createOwn(1_000)
      await soon(() => runScript(store, SET, 0, {}))
      await store.command(['DEL', store.key(0, 'made')], store.key(0))
      server.pause()
      const error = await fails(runScript(store, SET, 0, {})).finally(() => server.resume())
      expect(error).toMatchObject({ code: 'unavailable', outcome: 'unknown' })
      // Over the same connection, so after the write that timed out.
      expect(await made()).toBe(null)
    })

    it('does nothing late, whatever the injected time is', async () => {
      const options = { client: connected.client, deploymentId: 'frozen', now: () => 9e15, commandTimeoutMs: 1_000 }
      const store = createStore(options)
      const known = defineScript('test.known', { args: [], answer: (reply) => reply }, `return 'known'`)
      await soon(() => runScript(store, known, 0, {}))
      server.pause()
      await fails(runScript(store, SET, 0, {})).finally(() => server.resume())
      expect(await store.command(['GET', store.key(0, 'made')], store.key(0))).toBe(null)
    })

    it('is retried once if the clock of the store has jumped', async () => {
      const { store, made } = createOwn()
      await runScript(store, SET, 0, {})
      const real = performance.now.bind(performance)
      const before = await made()
      vi.spyOn(performance, 'now').mockImplementation(() => real() - 60_000)
      expect(await runScript(store, SET, 0, {})).toBe('made')
      expect(Number(await made())).toBeGreaterThanOrEqual(Number(before))
    })

    it('was not run if the time of the store could not be read', async () => {
      const { store } = createOwn(200)
      server.pause()
      const error = await fails(runScript(store, SET, 0, {})).finally(() => server.resume())
      expect(error).toMatchObject({ code: 'unavailable', outcome: 'not_run' })
      expect(wasNotRun(error)).toBe(true)
    })

    it.each([
      ['out of memory', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
      ['a replica', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    ])('was not run by a store that is %s', async (_, spoil, repair) => {
      const { store, made } = createOwn()
      await runScript(store, SET, 0, {})
      await store.command(['DEL', store.key(0, 'made')], store.key(0))
      await server.cli(...spoil)
      const error = await fails(runScript(store, SET, 0, {}))
      await server.cli(...repair)
      expect(error).toMatchObject({ code: 'unavailable', outcome: 'not_run' })
      expect(await made()).toBe(null)
    })

    it('that failed half-way is unknown, and reported', async () => {
      const { store, errors, made } = createOwn()
      await store.command(['RPUSH', store.key(0, 'list'), 'x'], store.key(0))
      expect(await fails(runScript(store, HALFWAY, 0, {}))).toMatchObject({ code: 'unavailable', outcome: 'unknown' })
      expect(await made()).not.toBe(null)
      expect(errors).toHaveLength(1)
    })

    it('was not run over a client that is closed', async () => {
      const closed = await clients[kind]([server.port])
      await closed.close()
      const store = createStore({ client: closed.client, deploymentId: 'closed' })
      expect(wasNotRun(await fails(runScript(store, SET, 0, {})))).toBe(true)
    })
  })
})
