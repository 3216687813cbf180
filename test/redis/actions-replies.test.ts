/** Calls and events whose scripts arrive twice, or whose replies are lost: nothing is done twice, and nothing is lost. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRpcCorrelator } from '../../src/memory/rpc/facility.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import { PUBLISH } from '../../src/redis/event-bus/topics.js'
import { createRedisRpcCorrelator } from '../../src/redis/rpc/facility.js'
import { OPEN_CALL, SETTLE_CALL, WITHDRAW_CALL } from '../../src/redis/rpc/pending.js'
import { collect, dataOf, event } from '../contract/event-bus.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { describeStores } from './matrix.js'

const call = { action: 'a', user_id: 'ann', client_id: 'c' }
const ctx = { signal: new AbortController().signal }

describe('the correlator in memory', () => {
  it('refuses a user whose share is full, and no other user', async () => {
    const rpc = createRpcCorrelator({ maxPendingPerUser: 2 })
    await rpc.open(call)
    await rpc.open(call)
    await expect(rpc.open(call)).rejects.toMatchObject({ code: 'capacity_exceeded' })
    expect(await rpc.open({ ...call, user_id: 'bob' })).toBeDefined()
    await rpc.close()
  })
})

describeStores('after a repeated request', (_kind, place) => {
  it('publishes one event at one position', async () => {
    const deployment = place()
    const { client, plan } = lossyClient(deployment.client)
    const bus = createRedisEventBus({ ...deployment, client })
    onTestFinished(async () => void (await bus.close()))
    const reader = bus.subscribe('t')
    await bus.prepare('t')
    // Known to the store from here on.
    await bus.publish('t', event(1))
    void plan.meet('repeated', await runsOf(PUBLISH))
    await bus.publish('t', event(2))
    await bus.publish('t', event(3))
    expect(dataOf(await collect(reader, 3))).toEqual([1, 2, 3])
    expect(reader.position.seq).toBe(3)
  })

  it.each([
    ['repeated', OPEN_CALL],
    ['repeated', SETTLE_CALL],
    ['repeated', WITHDRAW_CALL],
    ['lost', WITHDRAW_CALL],
  ] as const)('is one call and one reply: %s', async (fault, script) => {
    const deployment = place()
    const { client, plan } = lossyClient(deployment.client)
    const rpc = createRedisRpcCorrelator({ ...deployment, client })
    onTestFinished(async () => void (await rpc.close()))
    const once = async (n: number) => {
      const { correlation_id, result } = await rpc.open(call)
      expect(await rpc.settle(correlation_id, { ok: true, result: n })).toBe(true)
      expect(await result).toBe(n)
      expect(await rpc.settle(correlation_id, { ok: true, result: 'late' })).toBe(false)
    }
    await once(1)
    void plan.meet(fault, await runsOf(script))
    await once(2)
    expect((await rpc.inspector.listPending({}, { limit: 10, cursor: null }, ctx)).items).toEqual([])
  })

  it('keeps a share of the pending calls for each user', async () => {
    const rpc = createRedisRpcCorrelator({ ...place(), maxPendingPerUser: 2 })
    onTestFinished(async () => void (await rpc.close()))
    await rpc.open(call)
    await rpc.open(call)
    await expect(async () => rpc.open(call)).rejects.toMatchObject({ code: 'capacity_exceeded' })
    expect(await rpc.open({ ...call, user_id: 'bob' })).toBeDefined()
  })
})
