/** The sites of one process. */

import type { LastEvents } from '../../contract/event-bus.js'
import type { Inspected } from '../../contract/families.js'
import { toTimestamp } from '../../contract/ids.js'
import { siteStream } from '../../contract/ingest.js'
import { deepFreeze, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { Clocked, defineOptions, type Input, parseInput, readOptions, withMethods } from '../../contract/options.js'
import { scanLimit } from '../../contract/page.js'
import {
  DeleteSiteInput,
  lastEventFields,
  refuseGenericActionNames,
  type Site,
  SiteInput,
  type SiteInspector,
  SiteOptions,
  type SiteRegistry,
  type SiteRow,
} from '../../contract/sites.js'
import { createTally } from '../../fair-share/fair-share.js'
import { Refusal } from '../../refusal.js'
import { createListing } from '../table/listing.js'
import { createVersion } from '../table/version.js'

const OfBus = defineOptions({
  /** The bus of the sites' events, for the last event of each site in `/sites`. @default none: it is `null` */
  bus: withMethods<LastEvents>('lastEvent').optional(),
})
/** Options of `createSiteRegistry`. */
export const SiteRegistryOptions = defineOptions({ ...SiteOptions.shape, ...OfBus.shape, ...Clocked.shape })
/** Options of `createSiteRegistry`. */
export interface SiteRegistryOptions extends SiteOptions, Input<typeof OfBus>, Clocked {}

/** A site and its position in the order of declarations. */
interface Entry {
  readonly sequence: number
  site: Site
}

/**
 * Creates a site registry in memory. Records are frozen.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 */
export function createSiteRegistry(options: SiteRegistryOptions = {}): Inspected<SiteRegistry, SiteInspector> {
  const { now, bus, maxSites, maxSitesPerUser } = readOptions(SiteRegistryOptions, options)
  const sites = new Map<string, Entry>()
  const listing = createListing<Entry>({ owner: ({ site }) => site.owner })
  const sitesOf = createTally()

  function requireRoom(owner: string): void {
    if (sitesOf.of(owner) >= maxSitesPerUser)
      throw new Refusal('capacity_exceeded', `maximum of ${maxSitesPerUser} sites per owner reached`)
    if (sites.size >= maxSites) throw new Refusal('capacity_exceeded', `maximum of ${maxSites} sites reached`)
  }

  /** Returns the row of a site. The number of its sessions is added elsewhere. */
  const rowOf = ({ site }: Entry): SiteRow => {
    const last = bus?.lastEvent(siteStream(site.owner, site.site_id))
    return { ...site, sessions: null, ...lastEventFields(last ?? null) }
  }

  const version = createVersion()

  const inspector: SiteInspector = {
    version() {
      if (!bus) return version.text()
      const events = bus.version?.() ?? null
      return events === null ? null : `${version.text()}.${events}`
    },
    listSites: (filter, page, ctx) => listing.list(filter, page, rowOf, scanLimit(ctx)),
    getSite(siteId) {
      const entry = sites.get(siteId)
      return entry ? rowOf(entry) : null
    },
  }

  return {
    inspector,
    async get(siteId) {
      return sites.get(siteId)?.site ?? null
    },
    async put(given) {
      refuseGenericActionNames(given)
      const input = parseInput(SiteInput, given)
      const entry = sites.get(input.site_id)
      const old = entry?.site
      if (old && old.owner !== input.owner) throw new Refusal('owner_mismatch')
      if (!old) requireRoom(input.owner)
      const at = toTimestamp(now())
      const site = { ...input, created_at: old?.created_at ?? at, updated_at: at }
      toJson(site, RECORD_BYTES)
      deepFreeze(site)
      version.raise()
      if (entry) entry.site = site
      else {
        const made: Entry = { sequence: listing.arrive(), site }
        sites.set(site.site_id, made)
        listing.add(made)
        sitesOf.add(site.owner, 1)
      }
      return { created: old === undefined, site }
    },
    async delete(siteId, options = {}) {
      const { owner } = parseInput(DeleteSiteInput, options)
      const entry = sites.get(siteId)
      if (entry === undefined || (owner !== undefined && entry.site.owner !== owner)) return false
      version.raise()
      sitesOf.add(entry.site.owner, -1)
      listing.remove(entry)
      return sites.delete(siteId)
    },
  }
}
