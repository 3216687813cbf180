/** The sites of one process. */

import { toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import { deepFreeze, toJson } from '../contract/json.js'
import { RECORD_BYTES } from '../contract/limits.js'
import { refuseGenericActionNames, SITES_MAX, type Site, SiteInput, type SiteRegistry } from '../contract/sites.js'
import { Refusal } from '../refusal.js'

export interface SiteRegistryOptions {
  /** Most sites. @default 10000 */
  maxSites?: number | undefined
  /** Epoch ms. */
  now?: (() => number) | undefined
}

/** A registry of sites in memory. Records are frozen: what was handed out is what was declared then. */
export function createSiteRegistry(options: SiteRegistryOptions = {}): SiteRegistry {
  const { maxSites = SITES_MAX, now = Date.now } = options
  const sites = new Map<string, Site>()

  return {
    async get(siteId) {
      return sites.get(siteId) ?? null
    },
    async put(given) {
      refuseGenericActionNames(given)
      const input = parseInput(SiteInput, given)
      const old = sites.get(input.site_id)
      if (old && old.owner !== input.owner) throw new Refusal('owner_mismatch')
      if (!old && sites.size >= maxSites) throw new Refusal('capacity_exceeded', `${maxSites} sites`)
      const at = toTimestamp(now())
      const site = { ...input, created_at: old?.created_at ?? at, updated_at: at }
      toJson(site, RECORD_BYTES)
      sites.set(site.site_id, deepFreeze(site))
      return { created: old === undefined, site }
    },
    async delete(siteId, { owner } = {}) {
      const site = sites.get(siteId)
      if (site === undefined || (owner !== undefined && site.owner !== owner)) return false
      return sites.delete(siteId)
    },
  }
}
