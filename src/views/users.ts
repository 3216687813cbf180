/** The users view: who is known to any source, a page at a time. */
import type * as z from 'zod'
import { Completeness } from '../contract/completeness.js'
import { compareIds } from '../contract/ids.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { UserIds, UserPart } from '../contract/observation.js'
import { type IdPageQuery, type PageQuery, pageOf } from '../contract/page.js'
import { addTo, type Finding, nothingFrom, observe, toObservation, UserObservation } from './findings.js'
import { completenessOf, readOnce, type ViewAsk, walk } from './reading.js'
import { type UserSource, userSources } from './sightings.js'

/** A page of users. */
export const UserPage = pageOf(UserObservation).extend({ completeness: Completeness })
export type UserPage = z.infer<typeof UserPage>

/** Users of one source, ordered: at least as many as the page holds, where there are as many. */
interface Candidates extends Finding {
  ids: string[]
}

function checkUserIds(ids: UserIds | undefined, { after, limit }: IdPageQuery): UserIds {
  if (!Array.isArray(ids) || ids.length > limit) throw new TypeError('listUserIds: not a list within its limit')
  let last = after
  for (const id of ids) {
    if (typeof id !== 'string' || (last !== null && compareIds(id, last) <= 0))
      throw new TypeError('listUserIds: not in order')
    last = id
  }
  return ids
}

/** The users of a source that lists them; of their parts nothing is known but that they are there. */
async function list(source: UserSource, page: PageQuery, view: ViewAsk): Promise<Candidates> {
  const { index, name } = source
  // One more than the page: that is how the page knows that another follows.
  const query = { after: page.cursor, limit: page.limit + 1 }
  const listed = await readOnce(name, async () => checkUserIds(await index.listUserIds?.(query, view.ask), query), view)
  if ('error' in listed) return { ids: [], ...nothingFrom(name, listed.error) }
  const ids = listed.value
  const examined = Math.min(ids.length, page.limit)
  const truncated = ids.truncated === true
  const parts = new Map(ids.map((user_id): [string, UserPart] => [user_id, { user_id }]))
  return { ids, parts, exhaustive: true, reading: { source: name, examined, truncated, failed: false } }
}

/** The users whom a walk over the entries of a source meets, with what the entries tell. */
async function sample(source: UserSource, page: PageQuery, view: ViewAsk): Promise<Candidates> {
  const parts = new Map<string, UserPart>()
  const visit = (entries: unknown[]) =>
    addTo(parts, source, entries, (id) => page.cursor === null || compareIds(id, page.cursor) > 0)
  const reading = await walk(source.name, (p) => source.list({}, p, view.ask), view, visit)
  if (reading.failed) return { ids: [], parts: null, reading, exhaustive: false }
  return { ids: [...parts.keys()].sort(compareIds), parts, reading, exhaustive: !reading.truncated }
}

/**
 * A source's candidates with their numbers. Whoever is on the page and known to this source is among its own first
 * `page.limit` users, so no source waits for another, and one that hangs holds up none.
 */
async function find(source: UserSource, page: PageQuery, view: ViewAsk): Promise<Candidates> {
  const { index } = source
  const found = index.listUserIds ? await list(source, page, view) : await sample(source, page, view)
  const counted = !index.listUserIds && !index.observeUsers
  if (!found.parts || counted || found.ids.length === 0) return found
  const { parts, reading } = await observe(source, found.ids.slice(0, page.limit), view)
  const whole = parts && !reading.truncated
  return {
    ...found,
    // Numbers that failed leave the users in hand; a user that left in between is gone.
    parts: whole ? parts : new Map([...found.parts, ...(parts ?? [])]),
    reading: {
      ...found.reading,
      examined: Math.max(reading.examined, found.reading.examined),
      truncated: reading.truncated || found.reading.truncated,
    },
  }
}

/** Users in the order of their ids. `page.cursor` is the last id of the page before. */
export async function listUsers(inspectors: Inspectors, page: PageQuery, view: ViewAsk): Promise<UserPage> {
  const found = await Promise.all(userSources(inspectors).map((source) => find(source, page, view)))
  const merged = [...new Set(found.flatMap((candidates) => candidates.ids))].sort(compareIds)
  const ids = merged.slice(0, page.limit)
  const items = ids.map((id) => toObservation(id, found)).filter((user) => user.sources.length > 0)
  const has_more = merged.length > ids.length
  return {
    items,
    next_cursor: has_more ? (ids.at(-1) ?? null) : null,
    has_more,
    completeness: completenessOf(
      found.map((candidates) => candidates.reading),
      view,
    ),
  }
}
