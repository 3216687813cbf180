/** How a site is stored, and read back. */
import { toTimestamp } from '../../contract/ids.js'
import { deepFreeze } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { Site, type SiteRow } from '../../contract/sites.js'
import type { StoreReply } from '../store/reply.js'
import { CUT_BYTES, defineListing, type Listed } from '../table/listed.js'
import { FOREIGN } from '../table/rows.js'

/** The site in `value`, which is two lines: its owner and times, and the declaration. `undefined` for what is none. */
export function readSite(siteId: string, value: string): Site | undefined {
  // Escapes of cjson make the first line longer than its record; the second is what was measured at write.
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

/** The row of a site as its own record tells it. */
export function readSiteRow(siteId: string, found: StoreReply): SiteRow | undefined {
  const site = readSite(siteId, String(found))
  return site && { ...site, sessions: null, last_event_at: null, last_position: null }
}

/** Sites by the order in which they were declared. */
export const SITES: Listed<SiteRow> = {
  name: 'sites',
  kind: 'site',
  indexes: ['owner'],
  script: defineListing(`
  local value = read('GETRANGE', K(t, 'site', id), 0, ${CUT_BYTES - 1})
  if not value then return ${FOREIGN}, 0 end
  if value ~= '' then return value, #value end`),
  read: readSiteRow,
}
