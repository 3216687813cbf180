/** The sites of a deployment, for relays on several nodes. */

import type { Inspected } from '../../contract/families.js'
import { toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { parseInput, readParts } from '../../contract/options.js'
import {
  DeleteSiteInput,
  refuseGenericActionNames,
  SiteInput,
  type SiteInspector,
  SiteOptions,
  type SiteRegistry,
} from '../../contract/sites.js'
import { shardOf } from '../store/keys.js'
import { listOf, parseFlag, WrongType } from '../store/reply.js'
import { defineScript, runScript, toUnavailable } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import { createSiteInspector, readSite } from './inspector.js'
import { scripts } from './sites.lua'

// The scripts of the site registry: a site belongs to its first owner until it is deleted.

const PUT_SITE = defineScript(
  'sites.put',
  {
    args: ['attempt', 'site', 'owner', 'declaration', 'max_per_owner', 'max_sites'],
    answer: (reply) => {
      const [head, isNew] = listOf(reply)
      return { head: String(head), isNew: isNew === 1 }
    },
  },
  scripts.put,
)

/** Deletes a site, of `owner` unless that is ''. Returns whether it existed. */
const DELETE_SITE = defineScript(
  'sites.delete',
  { args: ['attempt', 'site', 'owner'], answer: parseFlag },
  scripts.delete,
)

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

  return {
    inspector: createSiteInspector(store),
    async get(siteId) {
      const shard = shardOf(siteId, await store.claimShards())
      const key = store.key(shard, 'sites', 'site', siteId)
      let value: unknown
      try {
        value = await store.command(['GET', key], key)
      } catch (error) {
        if (!(error instanceof WrongType)) throw error
        value = ''
      }
      if (value === null) return null
      const site = readSite(siteId, String(value))
      if (site === undefined) store.onError(new BadRow(`${key} does not hold a valid site`))
      return site ?? null
    },

    async put(given) {
      refuseGenericActionNames(given)
      const { site_id, owner, ...definition } = parseInput(SiteInput, given)
      const { text } = toJson({ site_id, ...definition }, RECORD_BYTES)
      const shard = shardOf(site_id, await store.claimShards())
      const { head, isNew } = await runScript(store, PUT_SITE, shard, {
        attempt: crypto.randomUUID(),
        site: site_id,
        owner,
        declaration: text,
        max_per_owner: maxSitesPerUser,
        max_sites: maxSites,
      })
      const site = readSite(site_id, `${head}\n${text}`)
      if (site === undefined) throw toUnavailable(store, new BadRow(`invalid reply for the site ${site_id}`))
      return { created: isNew, site }
    },

    async delete(siteId, options = {}) {
      const { owner } = parseInput(DeleteSiteInput, options)
      const shard = shardOf(siteId, await store.claimShards())
      const attempt = crypto.randomUUID()
      return runScript(store, DELETE_SITE, shard, { attempt, site: siteId, owner: owner ?? '' })
    },
  }
}
