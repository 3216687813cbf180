/** Cooperative sites, for those in sight: a site is its owner's. */
import type { SiteFilter, SiteInspector, SiteRow } from '../../contract/sites.js'
import { listOwned } from './list.js'
import type { Seen } from './seen.js'

/** `record` where its owner is in sight. */
const ifOwned = <T extends { owner: string }>(record: T | null, { has }: Seen): T | null =>
  record && has(record.owner) ? record : null

export function scopeSites(sites: SiteInspector, seen: Seen): SiteInspector {
  return {
    listSites: listOwned<'owner', SiteRow, SiteFilter>('owner', seen.users, (filter, page, ask) =>
      sites.listSites(filter, page, ask),
    ),
    getSite: async (id, ask) => ifOwned(await sites.getSite(id, ask), seen),
  }
}
