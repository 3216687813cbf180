/** The viewer streams of a node when a pass meets a lost shard, or a stream ends during a pass. */
import { expect, it } from 'vitest'
import { shardOf } from '../../src/redis/store/keys.js'
import { createRedisSubscriptionRegistry, END_STREAMS, REPORT_STREAMS } from '../../src/redis/subscriptions/facility.js'
import { listIn, stream } from '../contract/subscriptions.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

describeNode('viewer streams of a delayed node', ({ client, keep }) => {
  const idsIn = async (registry: ReturnType<typeof createRedisSubscriptionRegistry>) =>
    (await listIn(registry)).map(({ subscription_id }) => subscription_id).sort()

  it('reports the streams of a shard repeatedly, even if another one is lost, and reports the loss', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const heard: unknown[] = []
    const where = { deploymentId: 'apart', shards: 2 }
    const onError = (error: unknown) => heard.push(error)
    const registry = createRedisSubscriptionRegistry({ ...where, client: lossy, onError, commandTimeoutMs: 500 })
    keep(registry)
    const isReport = await runsOf(REPORT_STREAMS)
    const loseReports = async (): Promise<never> => {
      for (;;) await plan.meet('unsent', (args) => isReport(args) && args[3]?.includes('{apart:0}') === true)
    }
    void loseReports()
    const users = Array.from({ length: 100 }, (_, n) => `u${n}`)
    const userIn = (shard: number) => users.find((user) => shardOf(user, 2) === shard) as string
    let pending = 1
    const state = () => ({ ...stream('x').state(), pending })
    registry.add(stream('lost', { user_id: userIn(0) }))
    registry.add(stream('there', { user_id: userIn(1), state }))
    const shown = async () => (await listIn(registry)).map((row) => [row.subscription_id, row.pending])
    await soon(async () => expect(await shown()).toEqual([['there', 1]]))
    pending = 2
    await soon(async () => expect(await shown()).toEqual([['there', 2]]))
    expect(heard[0]).toMatchObject({ code: 'unavailable' })
  })

  it('does not report a stream that ended while others were reported', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const registry = createRedisSubscriptionRegistry({
      client: lossy,
      deploymentId: 'meanwhile',
      onError: null,
      commandTimeoutMs: 60_000,
    })
    keep(registry)
    const endFirst = registry.add(stream('first'))
    await soon(async () => expect(await idsIn(registry)).toEqual(['first']))
    const held = plan.meet('held', await runsOf(END_STREAMS))
    endFirst()
    const endSecond = registry.add(stream('second'))
    await held
    endSecond()
    registry.add(stream('third'))
    expect(await idsIn(registry)).toEqual([])
    await plan.release()
    // Reported by the pass after the delayed one.
    await soon(async () => expect(await idsIn(registry)).toContain('third'))
    expect(await idsIn(registry)).toEqual(['third'])
  })
})
