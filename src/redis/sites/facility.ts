/** The sites of a deployment, for relays on several nodes. */
import type { Inspected } from '../../internal/contract/families.js'
import { readParts } from '../../internal/contract/options.js'
import { type SiteInspector, SiteOptions, type SiteRegistry } from '../../internal/contract/sites.js'
import { siteRules } from '../../internal/rules/sites.js'
import { shardOf } from '../store/keys.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createRecords } from '../table/records.js'
import { createSiteInspector, SITES } from './inspector.js'

/** Options of `createRedisSiteRegistry`. */
export type RedisSiteRegistryOptions = StoreOptions & SiteOptions

/**
 * Creates a site registry in Redis: every node sees what any node registers. Nothing is cached, so a changed or deleted
 * site takes effect immediately everywhere.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 *
 * @example
 * const sites = createRedisSiteRegistry({ client, deploymentId: 'prod' })
 */
export function createRedisSiteRegistry(options: RedisSiteRegistryOptions): Inspected<SiteRegistry, SiteInspector> {
  return siteRegistryOn(createStore(options, inStore(SiteOptions)), options)
}

export function siteRegistryOn(store: Store, options: SiteOptions): Inspected<SiteRegistry, SiteInspector> {
  const { maxSites, maxSitesPerUser } = readParts(SiteOptions, options)
  const { read, rowOf, change } = createRecords(store, {
    table: SITES,
    maxEntries: maxSites,
    maxEntriesPerUser: maxSitesPerUser,
    canDelete: true,
    encode: ({ record }, _row, _now, sent) => ({
      row: { ...record, sent },
      index: [['owner', record.owner]],
      leaves: '+inf',
    }),
  })
  const shardFor = async (siteId: string) => shardOf(siteId, await store.claimShards())
  return {
    inspector: createSiteInspector(store),
    async get(siteId) {
      const row = rowOf(siteId, await read(await shardFor(siteId), siteId))
      return row ? (SITES.read(row, 0) ?? null) : null
    },
    ...siteRules({ change: async (id, step) => change(await shardFor(id), id, step, crypto.randomUUID()) }),
  }
}
