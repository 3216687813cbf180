/** Shares of a shared store, and what one user's heartbeat costs for others. */
import { expect, it } from 'vitest'
import { createRedisBrowserWindowRegistry } from '../../src/redis/browser-windows/facility.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { connectionSharesBattery, reportedSharesBattery } from '../contract/shares.js'
import { describeStores } from './matrix.js'

describeStores('the shares of a shared store', (kind, place) => {
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
})
