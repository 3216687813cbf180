/** Reads the sites of a shared store. */

import * as z from 'zod'
import { siteStream } from '../../internal/contract/ingest.js'
import { deepFreeze } from '../../internal/contract/json.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { lastEventFields, Site, type SiteInspector, type SiteRow } from '../../internal/contract/sites.js'
import { readLastEvents } from '../event-bus/last-events.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { readRows, type TableReader } from '../table/rows.js'
import { isLost } from '../table/shards.js'

const StoredSite = Site.extend({ sent: z.string() })

export const SITES: TableReader<Site, z.infer<typeof StoredSite>> = {
  name: 'sites',
  idOf: ({ site_id }) => site_id,
  schema: StoredSite,
  indexes: ['owner'],
  read: ({ sent: _, ...site }) => deepFreeze(site),
}

export function createSiteInspector(store: Store): SiteInspector {
  /**
   * Adds the newest event of each site, with one read per shard. If all shards are down the sites are returned without
   * it.
   */
  async function withLife(rows: Site[], ctx: InspectionContext): Promise<SiteRow[]> {
    const topicOf = ({ owner, site_id }: Site) => siteStream(owner, site_id)
    const last = await readLastEvents(store, rows.map(topicOf), ctx).catch((error) => {
      if (!isLost(error, ctx)) throw error
      store.onError(error, ctx)
      return new Map<string, never>()
    })
    return rows.map((row) => ({ ...row, sessions: null, ...lastEventFields(last.get(topicOf(row)) ?? null) }))
  }

  return {
    async listSites(filter, page, ctx) {
      const listed = await readPage(store, SITES, filter, page, ctx)
      return { ...listed, items: await withLife(listed.items, ctx) }
    },
    async getSite(siteId, ctx) {
      const [place] = await readRows(store, SITES, shardOf(siteId, await store.shards(ctx)), [siteId], ctx)
      const site = place?.row && SITES.read(place.row, 0)
      return site ? ((await withLife([site], ctx))[0] ?? null) : null
    },
  }
}
