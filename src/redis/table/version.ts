/** When the tables of a deployment have changed, for observers, who may neither subscribe nor run scripts. */
import type { InspectionContext, Versioned } from '../../contract/page.js'
import type { Store } from '../store/store.js'
import { allShards } from './shards.js'

/**
 * The longest time that one version holds. What leaves by silence changes no key of the store: it shows
 * within this time, because it is read again.
 */
export const VERSION_HOLDS_MS = 5_000

/**
 * What an inspector over `tables` says of its changes: the versions that scripts have written beside them, by one `MGET` a shard.
 * `null` where what stands there is none; it throws where a shard is lost.
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
