/**
 * Opens, replies and withdrawals that arrive late or twice: a call is opened once, ends once, and gets its own reply.
 */
import { expect, it } from 'vitest'
import type { RpcSummary } from '../../src/internal/contract/rpc.js'
import { createRedisRpcCorrelator } from '../../src/redis/rpc/facility.js'
import { createRpcInspector } from '../../src/redis/rpc/inspector.js'
import { OPEN_CALL, SETTLE_CALL, WITHDRAW_CALL } from '../../src/redis/rpc/pending.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, createClock, FIRST } from '../contract/clock.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { type Matcher, named, runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

let shards = 0

type Call = { action: string; user_id: string; client_id: string }

/** Opens an unused shard of calls, with a clock that the test moves, and runs its scripts one by one. */
function openShard(client: RedisClient) {
  const clock = createClock()
  const store = createStore({ client, deploymentId: `calls${++shards}`, shards: 1, now: clock.now })
  const inspector = createRpcInspector(store)
  const bounds = { timeout: 300_000, max_pending: 10, max_per_user: 10 }
  return {
    clock,
    /** Opens `id` as `attempt`, which identifies one opening of it. */
    open: (
      id: string,
      attempt: string,
      { user_id = 'ann', ...more }: Partial<typeof bounds & { user_id: string }> = {},
    ) => {
      const call = {
        action: 'a',
        user_id,
        client_id: 'c',
        instance_id: null,
        correlation_id: id,
        direction: 'to_client',
        observed: false,
      }
      const fields = JSON.stringify({ ...call, node: 'n', attempt })
      return runScript(store, OPEN_CALL, 0, { ...bounds, ...more, id, fields })
    },
    /** Sends `text` as a reply with that name to `id`. */
    settle: (id: string, name: string, text: string) =>
      runScript(store, SETTLE_CALL, 0, {
        id,
        reply: text,
        how: 'succeeded',
        counts_late: 1,
        has_sender: 0,
        user: '',
        client: '',
        instance: '',
        name,
      }),
    replyTo: (id: string, attempt: string) => runScript(store, WITHDRAW_CALL, 0, { id, attempt, how: '' }),
    withdraw: (id: string, attempt: string) => runScript(store, WITHDRAW_CALL, 0, { id, attempt, how: 'cancelled' }),
    pending: async () =>
      (await inspector.listPending({}, FIRST, ASK)).items.map(({ correlation_id }) => correlation_id),
    counters: async () => ((await inspector.summary?.(ASK)) as RpcSummary).counters,
  }
}

describeNode('a shard of calls with late scripts', ({ client, keep }) => {
  it('refuses a pending id, and opens a repeated opening once', async () => {
    const { open, pending, counters } = openShard(client())
    await open('k', 'x')
    await open('k', 'x')
    await expect(open('k', 'y')).rejects.toMatchObject({ code: 'command_conflict' })
    expect(await pending()).toEqual(['k'])
    expect(await counters()).toMatchObject({ opened: 1 })
  })

  it('opens no more calls than its limit, across users, until one has ended', async () => {
    const { open, withdraw, pending } = openShard(client())
    const most = { max_pending: 2 }
    await open('k1', 'x1', { ...most, user_id: 'ann' })
    await open('k2', 'x2', { ...most, user_id: 'bob' })
    const third = () => open('k3', 'x3', { ...most, user_id: 'cat' })
    await expect(third()).rejects.toMatchObject({ code: 'capacity_exceeded' })
    await withdraw('k1', 'x1')
    await third()
    expect(await pending()).toEqual(['k2', 'k3'])
  })

  it('opens nothing for an opening that arrives after its end', async () => {
    const { open, settle, withdraw, pending, counters } = openShard(client())
    await open('k', 'x')
    await settle('k', 'r', '1')
    await open('k', 'x')
    await withdraw('never', 'y')
    await open('never', 'y')
    expect(await pending()).toEqual([])
    expect(await counters()).toMatchObject({ opened: 1, succeeded: 1, cancelled: 0 })
  })

  it('opens nothing for an opening that arrives again after its deadline', async () => {
    const { clock, open, pending, counters } = openShard(client())
    await open('k', 'x', { timeout: 500 })
    clock.advance(500)
    await open('k', 'x', { timeout: 500 })
    expect(await pending()).toEqual([])
    expect(await counters()).toMatchObject({ opened: 1, timed_out: 1 })
  })

  it('returns the first result for a reply that arrives twice, and drops any other', async () => {
    const { open, settle, replyTo, counters } = openShard(client())
    await open('k', 'x')
    expect([await settle('k', 'r', '1'), await settle('k', 'r', '1'), await settle('k', 's', '2')]).toEqual([
      'settled',
      'settled',
      'late',
    ])
    expect(await replyTo('k', 'x')).toBe('1')
    expect(await counters()).toMatchObject({ succeeded: 1, late: 1 })
  })

  it('refuses a reply to a call past its deadline, even if the call was not removed', async () => {
    const { clock, open, settle, replyTo, counters } = openShard(client())
    await open('k', 'x', { timeout: 500 })
    clock.advance(500)
    expect(await settle('k', 'r', '1')).toBe('late')
    expect(await replyTo('k', 'x')).toBeNull()
    expect(await counters()).toMatchObject({ succeeded: 0, late: 1 })
  })

  it('keeps a call when another opening of its id is withdrawn', async () => {
    const { open, withdraw, pending, counters } = openShard(client())
    await open('k', 'x')
    await withdraw('k', 'x')
    await open('k', 'y')
    await withdraw('k', 'x')
    expect(await pending()).toEqual(['k'])
    expect(await counters()).toMatchObject({ opened: 2, cancelled: 1 })
  })

  it('does not deliver a late reply to another call with the same id', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const deploymentId = `again${++shards}`
    const here = createRedisRpcCorrelator({ client: lossy, deploymentId, onError: null })
    const there = createRedisRpcCorrelator({ client: client(), deploymentId })
    keep(here)
    keep(there)
    const call = { action: 'a', user_id: 'ann', client_id: 'c', correlation_id: 'k' }
    const { result } = await here.open(call)
    const held = plan.meet('held', await runsOf(WITHDRAW_CALL))
    await there.settle('k', { ok: true, result: 1 })
    await held
    // The next look is not held up.
    expect(await result).toBe(1)
    const again = await here.open(call)
    await plan.release()
    await there.settle('k', { ok: true, result: 2 })
    expect(await again.result).toBe(2)
  })

  it('does not resolve a call with the reply to an earlier one with its id', async () => {
    const { open, settle, replyTo } = openShard(client())
    await open('k', 'x')
    await settle('k', 'r', '1')
    await open('k', 'y')
    expect(await replyTo('k', 'y')).toBeNull()
    expect(await settle('k', 's', '2')).toBe('settled')
    expect(await replyTo('k', 'y')).toBe('2')
  })

  it('does not confirm an opening with the reply to another one of its id', async () => {
    const { clock, open, settle, replyTo, withdraw } = openShard(client())
    await open('k', 'x', { timeout: 500 })
    clock.advance(500)
    await open('k', 'y')
    await settle('k', 'r', '1')
    expect([await withdraw('k', 'x'), await replyTo('k', 'x'), await replyTo('k', 'y')]).toEqual([null, null, '1'])
  })

  it('keeps a call when an earlier opening of its id fails late', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const options = { client: lossy, deploymentId: `former${++shards}`, onError: null, commandTimeoutMs: 1_000 }
    const rpc = createRedisRpcCorrelator(options)
    keep(rpc)
    const call = { action: 'a', user_id: 'ann', client_id: 'c', correlation_id: 'k' }
    // Now the server has cached the script.
    await rpc.open({ ...call, correlation_id: 'before' })
    const given = new AbortController()
    const held = plan.meet('held', await runsOf(OPEN_CALL))
    const former = rpc.open({ ...call, signal: given.signal })
    const failed = expect(former).rejects.toMatchObject({ code: 'unavailable' })
    await held
    given.abort()
    // Refused until the store knows that nothing waits for the earlier one.
    const { result } = await soon(() => rpc.open(call))
    await failed
    expect(await rpc.settle('k', { ok: true, result: 2 })).toBe(true)
    expect(await result).toBe(2)
  })

  it('finds a reply whose signal failed, even if another shard is lost', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const deploymentId = `apart${++shards}`
    const here = createRedisRpcCorrelator({ client: lossy, deploymentId, shards: 2, onError: null })
    const there = createRedisRpcCorrelator({ client: client(), deploymentId, shards: 2 })
    keep(here)
    keep(there)
    const [lost, other] = [0, 1].map((shard) => {
      const users = Array.from({ length: 100 }, (_, n) => `u${n}`)
      return { action: 'a', user_id: users.find((user) => shardOf(user, 2) === shard) as string, client_id: 'c' }
    }) as [Call, Call]
    const isLook: Matcher = (args) => named('EXISTS')(args) && args[1]?.includes(`{${deploymentId}:0}`) === true
    // Every check in the lost shard fails, and so does the read after a signal.
    const loseLooks = async (): Promise<never> => {
      for (;;) await plan.meet('unsent', isLook)
    }
    void loseLooks()
    void plan.meet('unsent', await runsOf(WITHDRAW_CALL))
    await here.open(lost)
    const { correlation_id, result } = await here.open({ ...other, timeout_ms: 30_000 })
    await there.settle(correlation_id, { ok: true, result: 1 })
    expect(await result).toBe(1)
  })
})
