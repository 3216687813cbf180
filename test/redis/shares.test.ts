/** Shares of what a shared store keeps, and what one user's heartbeat pays for others. */
import { expect, it } from 'vitest'
import { createRedisBrowserWindowRegistry } from '../../src/redis/browser-windows/facility.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { createClock } from '../contract/clock.js'
import { connectionSharesBattery, reportedSharesBattery } from '../contract/shares.js'
import { describeStores } from './matrix.js'

describeStores('the shares of a shared store', (kind, place, servers) => {
  connectionSharesBattery(kind, (options) => createRedisConnectionRegistry({ ...place(), shards: 1, ...options }))
  const contexts = (contexts: ReturnType<typeof createRedisContextRegistry>) => (user_id: string, context_id: string) =>
    contexts.report({ context_id, user_id, client_id: 'c', client_type: 'web', status: 'idle' })
  const windows = (windows: ReturnType<typeof createRedisBrowserWindowRegistry>) => (user_id: string, id: string) =>
    windows.report({ window_id: id, user_id, client_id: 'c' })
  reportedSharesBattery(
    `contexts over ${kind}`,
    (options) => createRedisContextRegistry({ ...place(), shards: 1, ...options }),
    contexts,
  )
  reportedSharesBattery(
    `windows over ${kind}`,
    (options) => createRedisBrowserWindowRegistry({ ...place(), shards: 1, ...options }),
    windows,
  )

  it(`gives back the claim on an id in another shard when a report is refused, over ${kind}`, async () => {
    const registry = createRedisContextRegistry({ ...place(), maxEntries: 10, maxEntriesPerUser: 1 })
    const report = contexts(registry)
    await report('mallory', 'm1')
    for (let n = 0; n < 8; n++) {
      await expect(report('mallory', `wanted${n}`)).rejects.toMatchObject({ code: 'capacity_exceeded' })
      await report(`alice${n}`, `wanted${n}`)
    }
    await expect(report('mallory', 'wanted1')).rejects.toMatchObject({ code: 'identity_conflict' })
  })

  it(`has a heartbeat pay for one silent connection at most that offers much, over ${kind}`, async () => {
    const clock = createClock()
    const registry = createRedisConnectionRegistry({ ...place(), shards: 1, now: clock.now })
    const actions = Array.from({ length: 500 }, (_, n) => `action-${n}`)
    const mallorys = { user_id: 'mallory', instance_id: 'i', client_type: 'web' as const }
    for (let n = 0; n < 20; n++) await registry.connect({ ...mallorys, client_id: `c${n}`, actions })
    clock.advance(60_000)
    const { connection_id } = await registry.connect({ ...mallorys, user_id: 'alice', client_id: 'c' })
    clock.advance(30_000)
    const written = async () => {
      const stats = await Promise.all(servers().map(({ cli }) => cli('INFO', 'commandstats')))
      return stats.reduce((sum, text) => sum + Number(/cmdstat_hincrby:calls=(\d+)/.exec(text)?.[1] ?? 0), 0)
    }
    const before = await written()
    expect(await registry.heartbeat(connection_id)).toBe(true)
    // Two counters for the kind of client and two for all, of each action.
    expect((await written()) - before).toBeLessThanOrEqual(4 * 500)
    expect((await written()) - before).toBeGreaterThan(0)
  })
})
