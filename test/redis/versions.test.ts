/** The versions of tables in a shared store: they change after every write of any node, and only then. */
import { describe, expect, it } from 'vitest'
import type { Versioned } from '../../src/contract/page.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { VERSION_HOLDS_MS } from '../../src/redis/table/shards.js'
import { ASK } from '../contract/clock.js'
import { writesOf } from '../contract/versions.js'
import { describeStores } from './matrix.js'
import { connectObserver } from './observer.js'
import { soon } from './wait-for.js'

/** Returns the stored versions, without the period in which they were read. */
async function written(one: Versioned): Promise<string> {
  const version = await (one as Required<Versioned>).version(ASK)
  expect(version).toMatch(/^\d+ /)
  return (version as string).replace(/^\d+ /, '')
}

describeStores('versions in Redis', (kind, place, servers) => {
  it('are others after every write, and the same after none', async () => {
    const here = place()
    const facilities = createRedisFacilities({ ...here, nodeId: 'a' })
    const observer = await connectObserver(kind, servers(), here.deploymentId)
    const { inspectors } = redisComposition({ client: observer.client, deploymentId: here.deploymentId, onError: null })
    for (const { what, family, act, later } of writesOf(facilities)) {
      const one = inspectors[family] as Versioned
      const before = await written(one)
      await act()
      const isOther = async () => expect([what, (await written(one)) === before]).toEqual([what, false])
      await (later ? soon(isOther) : isOther())
      // A node reports the state of each stream every few seconds.
      if (family === 'subscriptions') continue
      // A node may still be writing about what has just been delivered.
      await soon(async () => {
        const after = await written(one)
        expect([what, await written(one)]).toEqual([what, after])
      })
    }
    await facilities.close()
    await observer.close()
  })

  it('differ after the store has lost them, however much is written then', async () => {
    const here = place()
    const { contexts, close } = createRedisFacilities({ ...here, nodeId: 'a' })
    const report = () =>
      contexts.report({ user_id: 'ann', client_id: 'desk', client_type: 'web', context_id: 'c', status: 'active' })
    const seen = new Set<string>()
    const inspector = contexts.inspector as Versioned
    for (let i = 0; i < 3; i++) {
      seen.add(await written(inspector))
      for (let n = 0; n < 5; n++) {
        await report()
        seen.add(await written(inspector))
      }
      await Promise.all(
        servers().flatMap((server) =>
          Array.from({ length: here.shards }, (_, shard) =>
            server.cli('DEL', `relayscope:{${here.deploymentId}:${shard}}:contexts:version`).catch(() => {}),
          ),
        ),
      )
    }
    // One of nothing, and one of each report.
    expect(seen.size).toBe(16)
    await close()
  })

  it('are not changed by loops that have nothing to do', async () => {
    const facilities = createRedisFacilities({ ...place(), nodeId: 'a' })
    const { connections, dispatcher, sessions, sites } = facilities
    const client = { user_id: 'ann', client_id: 'desk' }
    await connections.connect({ ...client, instance_id: 'i', client_type: 'web' })
    await dispatcher.dispatch({ ...client, command_id: 'k', action: 'a', deadline_ms: 86_400_000 })
    await sites.put({ site_id: 'notes', owner: 'ann', mode: 'observe' })
    await sessions.open({ site_id: 'notes', owner: 'ann' })
    const all = [connections, dispatcher, sessions].map(({ inspector }) => inspector as Versioned)
    const before = await Promise.all(all.map(written))
    for (let i = 0; i < 3; i++) await dispatcher.reconcile()
    expect(await Promise.all(all.map(written))).toEqual(before)
    await facilities.close()
  })
})

describe('a version', () => {
  it('is valid no longer than an expiry may go unnoticed', () => expect(VERSION_HOLDS_MS).toBeLessThanOrEqual(5_000))
})
