/** Detects changes of a deployment's tables, for observers, who may neither subscribe nor run writing scripts. */
import type { InspectionContext, Versioned } from '../../contract/page.js'
import type { Store } from '../store/store.js'
import { allShards } from './shards.js'

/**
 * Maximum time that one version is valid, in ms. An expiry changes no key of the store: it becomes visible within this
 * time, because the data is read again.
 */
export const VERSION_HOLDS_MS = 5_000

/**
 * Returns the version of `tables`: the versions that scripts write, read with one `MGET` per shard. It is `null` if a
 * stored version is invalid, and throws if a shard is down.
 */
export function versioned(store: Store, tables: readonly string[]): Required<Versioned> {
  async function versionsIn(shard: number, ctx: InspectionContext): Promise<string | null> {
    const keys = tables.map((table) => store.key(shard, table, 'version'))
    const found = await store.command(['MGET', ...keys], keys[0] as string, ctx)
    return Array.isArray(found) && found.length === keys.length ? found.map((at) => at ?? '').join() : null
  }
  return {
    remoteVersion: true,
    async version(ctx) {
      const period = Math.floor(performance.now() / VERSION_HOLDS_MS)
      const shards = await allShards(store, ctx)
      const versions = await Promise.all(shards.map((shard) => versionsIn(shard, ctx)))
      return versions.includes(null) ? null : [period, ...versions].join(' ')
    },
  }
}
