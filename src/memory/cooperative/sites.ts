/** The sites of one process. */

import { toTimestamp } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import { deepFreeze, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { checkOptions, FUNCTION, resolveBounds, type Shape } from '../../contract/options.js'
import {
  refuseGenericActionNames,
  SITE_BOUNDS,
  SITE_OPTIONS,
  type Site,
  SiteInput,
  type SiteOptions,
  type SiteRegistry,
} from '../../contract/sites.js'
import { Holders } from '../../fair-share/holders.js'
import { Refusal } from '../../refusal.js'

export interface SiteRegistryOptions extends SiteOptions {
  /** Epoch ms. @default Date.now */
  now?: (() => number) | undefined
}

const OPTIONS: Shape<SiteRegistryOptions> = { ...SITE_OPTIONS, now: FUNCTION }

/**
 * A registry of sites in memory. Records are frozen: what was handed out is what was declared then.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 */
export function createSiteRegistry(options: SiteRegistryOptions = {}): SiteRegistry {
  checkOptions(options, OPTIONS)
  const { now = Date.now } = options
  const { maxSites, maxSitesPerUser } = resolveBounds(options, SITE_BOUNDS)
  const sites = new Map<string, Site>()
  const owners = new Holders()

  function requireRoom(owner: string): void {
    if (owners.of(owner) >= maxSitesPerUser)
      throw new Refusal('capacity_exceeded', `${maxSitesPerUser} sites of one owner`)
    if (sites.size >= maxSites) throw new Refusal('capacity_exceeded', `${maxSites} sites`)
  }

  return {
    async get(siteId) {
      return sites.get(siteId) ?? null
    },
    async put(given) {
      refuseGenericActionNames(given)
      const input = parseInput(SiteInput, given)
      const old = sites.get(input.site_id)
      if (old && old.owner !== input.owner) throw new Refusal('owner_mismatch')
      if (!old) requireRoom(input.owner)
      const at = toTimestamp(now())
      const site = { ...input, created_at: old?.created_at ?? at, updated_at: at }
      toJson(site, RECORD_BYTES)
      sites.set(site.site_id, deepFreeze(site))
      if (!old) owners.add(site.owner)
      return { created: old === undefined, site }
    },
    async delete(siteId, { owner } = {}) {
      const site = sites.get(siteId)
      if (site === undefined || (owner !== undefined && site.owner !== owner)) return false
      owners.remove(site.owner)
      return sites.delete(siteId)
    },
  }
}
