/** The sites of one process. */

import type { LastEvents } from '../../internal/contract/event-bus.js'
import type { Inspected } from '../../internal/contract/families.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { siteStream } from '../../internal/contract/ingest.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { Clocked, defineOptions, type Input, readOptions, withMethods } from '../../internal/contract/options.js'
import { scanLimit } from '../../internal/contract/page.js'
import {
  lastEventFields,
  type Site,
  type SiteInspector,
  SiteOptions,
  type SiteRegistry,
  type SiteRow,
} from '../../internal/contract/sites.js'
import { Refusal } from '../../internal/refusal.js'
import type { Records } from '../../internal/rules/records.js'
import { siteRules } from '../../internal/rules/sites.js'
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
  const version = createVersion()
  const listing = createListing<Entry>({ owner: ({ site }) => site.owner })

  const records: Records<Site> = {
    async change(id, step) {
      const entry = sites.get(id)
      const { record, answer } = step(entry?.site, toTimestamp(now()))
      if (record === undefined) return answer
      if (record && !entry) {
        if (listing.sizeOf('owner', record.owner) >= maxSitesPerUser)
          throw new Refusal('capacity_exceeded', `maximum of ${maxSitesPerUser} sites per owner reached`)
        if (sites.size >= maxSites) throw new Refusal('capacity_exceeded', `maximum of ${maxSites} sites reached`)
        const made: Entry = { sequence: listing.arrive(), site: deepFreeze(record) }
        sites.set(id, made)
        listing.add(made)
      } else if (record && entry) entry.site = deepFreeze(record)
      else if (entry) {
        listing.remove(entry)
        sites.delete(id)
      }
      version.raise()
      return answer
    },
  }

  /** Returns the row of a site. The number of its sessions is added elsewhere. */
  const rowOf = ({ site }: Entry): SiteRow => {
    const last = bus?.lastEvent(siteStream(site.owner, site.site_id))
    return { ...site, sessions: null, ...lastEventFields(last ?? null) }
  }

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
    ...siteRules(records),
  }
}
