/** The users view: who is known to any source, a page at a time. */
import type * as z from 'zod'
import { Completeness } from '../contract/completeness.js'
import { compareIds } from '../contract/ids.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { UserPart } from '../contract/observation.js'
import { type PageQuery, pageOf } from '../contract/page.js'
import { addTo, type Finding, observe, toObservation, UserObservation } from './findings.js'
import { completenessOf, failed, readOnce, type ViewAsk, walk } from './reading.js'
import { type UserSource, userSources } from './sightings.js'

/** A page of users. */
export const UserPage = pageOf(UserObservation).extend({ completeness: Completeness })
export type UserPage = z.infer<typeof UserPage>

/** A source's candidates for a page: user ids in order, and the parts that sampling them has brought along. */
interface Candidates extends Finding {
  ids: string[]
  sampled: boolean
}

const after = (bound: string | null) => (id: string) => bound === null || compareIds(id, bound) > 0

async function findCandidates(source: UserSource, page: PageQuery, ask: ViewAsk): Promise<Candidates> {
  const { index, name } = source
  const isAfter = after(page.cursor)
  if (index.listUserIds) {
    // One more than the page: that is how the page knows that another follows.
    const query = { after: page.cursor, limit: page.limit + 1 }
    const listed = await readOnce(name, () => index.listUserIds?.(query, ask) ?? [], ask)
    if ('error' in listed) return { ids: [], sampled: false, parts: null, reading: failed(name, listed.error) }
    const ids = listed.value.filter(isAfter)
    return {
      ids,
      sampled: false,
      parts: new Map(),
      reading: { source: name, examined: 0, truncated: false, failed: false },
    }
  }
  const parts = new Map<string, UserPart>()
  const reading = await walk(
    name,
    (p) => source.list({}, p, ask),
    ask,
    (entries) => {
      for (const entry of entries) if (isAfter(entry.user_id)) addTo(parts, source, entry)
    },
  )
  return { ids: [...parts.keys()], sampled: true, parts: reading.failed ? null : parts, reading }
}

async function detail(source: UserSource, found: Candidates, ids: readonly string[], ask: ViewAsk): Promise<Finding> {
  if (!found.parts || ids.length === 0 || (found.sampled && !source.index.observeUsers)) return found
  const finding = await observe(source, ids, ask)
  // A sample that was cut has missed users, however exact the numbers of those that it found.
  const { reading } = finding
  const examined = Math.max(reading.examined, found.reading.examined)
  return { ...finding, reading: { ...reading, examined, truncated: reading.truncated || found.reading.truncated } }
}

/** Users in the order of their ids. `page.cursor` is the last id of the page before. */
export async function listUsers(inspectors: Inspectors, page: PageQuery, ask: ViewAsk): Promise<UserPage> {
  const sources = userSources(inspectors)
  const found = await Promise.all(sources.map((source) => findCandidates(source, page, ask)))
  const merged = [...new Set(found.flatMap((candidates) => candidates.ids))].sort(compareIds)
  const ids = merged.slice(0, page.limit)
  const findings = await Promise.all(sources.map((source, i) => detail(source, found[i] as Candidates, ids, ask)))
  const items = ids.map((id) => toObservation(id, findings))
  const has_more = merged.length > ids.length
  return {
    items,
    next_cursor: has_more ? (ids.at(-1) ?? null) : null,
    has_more,
    completeness: completenessOf(
      findings.map((finding) => finding.reading),
      ask,
    ),
  }
}
