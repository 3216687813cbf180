/** What a declaration and a deletion do to a site: written once, run atomically by each store. */

import { toJson } from '../contract/json.js'
import { RECORD_BYTES } from '../contract/limits.js'
import { parseInput } from '../contract/options.js'
import {
  DeleteSiteInput,
  refuseGenericActionNames,
  type Site,
  SiteInput,
  type SiteRegistry,
} from '../contract/sites.js'
import { Refusal } from '../refusal.js'
import type { Change, Records } from './records.js'

export const siteRules = (records: Records<Site>): Pick<SiteRegistry, 'put' | 'delete'> => ({
  async put(given) {
    refuseGenericActionNames(given)
    const input = parseInput(SiteInput, given)
    toJson(input, RECORD_BYTES)
    return records.change(
      input.site_id,
      (known, at) => {
        if (known && known.owner !== input.owner) throw new Refusal('owner_mismatch')
        const record: Site = { ...input, created_at: known?.created_at ?? at, updated_at: at }
        return { record, renews: true, answer: { created: !known, site: record } }
      },
      { user_id: input.owner },
    )
  },
  async delete(siteId, options = {}) {
    const { owner } = parseInput(DeleteSiteInput, options)
    return records.change(siteId, (known): Change<Site, boolean> => {
      if (!known || (owner !== undefined && known.owner !== owner)) return { answer: false }
      return { record: null, answer: true }
    })
  },
})
