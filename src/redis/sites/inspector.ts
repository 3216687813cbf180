/** Reads the sites of a shared store. */
import type { Ask } from '../../contract/page.js'
import { siteStream } from '../../contract/site-messages.js'
import { lifeOf, type SiteInspector, type SiteRow } from '../../contract/sites.js'
import { readLastEvents } from '../event-bus/last-events.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { readListed, tellBad } from '../table/listed.js'
import { readIndex } from '../table/rows.js'
import { isLost } from '../table/shards.js'
import { versioned } from '../table/version.js'
import { readSiteRow, SITES } from './format.js'

export function createSiteInspector(store: Store): SiteInspector {
  /** One read a shard for all of them. Where no shard answers, the sites are told without. */
  async function withLife(rows: SiteRow[], ask: Ask): Promise<SiteRow[]> {
    const topicOf = ({ owner, site_id }: SiteRow) => siteStream(owner, site_id)
    const last = await readLastEvents(store, rows.map(topicOf), ask).catch((error) => {
      if (!isLost(error, ask)) throw error
      store.onError(error, ask)
      return new Map<string, never>()
    })
    return rows.map((row) => ({ ...row, ...lifeOf(last.get(topicOf(row)) ?? null) }))
  }

  return {
    ...versioned(store, [SITES.name, 'bus']),
    async listSites(filter, page, ask) {
      const listed = await readListed(store, SITES, filter, page, ask)
      return { ...listed, items: await withLife(listed.items, ask) }
    },
    async getSite(siteId, ask) {
      const key = store.key(shardOf(siteId, await store.shards(ask)), SITES.name, SITES.kind, siteId)
      const value = await readIndex(store, ['GET', key], ask)
      if (value === null) return null
      const row = readSiteRow(siteId, value)
      if (row === undefined) tellBad(store, key, siteId, ask)
      return row ? ((await withLife([row], ask))[0] ?? null) : null
    },
  }
}
