/** Reads the sites of a shared store. */

import { toTimestamp } from '../../contract/ids.js'
import { siteStream } from '../../contract/ingest.js'
import { deepFreeze } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import type { InspectionContext } from '../../contract/page.js'
import { lastEventFields, Site, type SiteInspector, type SiteRow } from '../../contract/sites.js'
import { readLastEvents } from '../event-bus/last-events.js'
import { shardOf } from '../store/keys.js'
import type { StoreReply } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { CUT_BYTES, defineListing, type Listed, readListed, reportBadRecord } from '../table/listed.js'
import { FOREIGN, readIndex } from '../table/rows.js'
import { isLost, versioned } from '../table/shards.js'
import { scripts } from './sites.lua'

// Format of a stored site.

/** Parses a site of two lines: its owner and times, and the declaration. Returns `undefined` if it is invalid. */
export function readSite(siteId: string, value: string): Site | undefined {
  // cjson escapes can make the first line longer than its record; the second was measured when it was written.
  if (value.length > 2 * RECORD_BYTES) return undefined
  const cut = value.indexOf('\n')
  try {
    const { owner, created_at, updated_at } = JSON.parse(value.slice(0, cut))
    const times = { created_at: toTimestamp(created_at), updated_at: toTimestamp(updated_at) }
    const found = Site.safeParse({ ...JSON.parse(value.slice(cut + 1)), owner, ...times })
    return found.success && found.data.site_id === siteId ? deepFreeze(found.data) : undefined
  } catch {
    return undefined
  }
}

/** Returns the row of a site with the fields of its own record. */
function readSiteRow(siteId: string, found: StoreReply): SiteRow | undefined {
  const site = readSite(siteId, String(found))
  return site && { ...site, sessions: null, last_event_at: null, last_position: null }
}

/** Sites in the order in which they were declared. */
const SITES: Listed<SiteRow> = {
  name: 'sites',
  kind: 'site',
  indexes: ['owner'],
  script: defineListing(scripts.list, { CUT_BYTES, FOREIGN }),
  read: readSiteRow,
}

export function createSiteInspector(store: Store): SiteInspector {
  /**
   * Adds the newest event of each site, with one read per shard. If all shards are down the sites are returned without
   * it.
   */
  async function withLife(rows: SiteRow[], ctx: InspectionContext): Promise<SiteRow[]> {
    const topicOf = ({ owner, site_id }: SiteRow) => siteStream(owner, site_id)
    const last = await readLastEvents(store, rows.map(topicOf), ctx).catch((error) => {
      if (!isLost(error, ctx)) throw error
      store.onError(error, ctx)
      return new Map<string, never>()
    })
    return rows.map((row) => ({ ...row, ...lastEventFields(last.get(topicOf(row)) ?? null) }))
  }

  return {
    ...versioned(store, [SITES.name, 'bus']),
    async listSites(filter, page, ctx) {
      const listed = await readListed(store, SITES, filter, page, ctx)
      return { ...listed, items: await withLife(listed.items, ctx) }
    },
    async getSite(siteId, ctx) {
      const key = store.key(shardOf(siteId, await store.shards(ctx)), SITES.name, SITES.kind, siteId)
      const value = await readIndex(store, ['GET', key], ctx)
      if (value === null) return null
      const row = readSiteRow(siteId, value)
      if (row === undefined) reportBadRecord(store, key, siteId, ctx)
      return row ? ((await withLife([row], ctx))[0] ?? null) : null
    },
  }
}
