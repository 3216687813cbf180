/** The users view: who is known to any source, a page at a time. */
import type * as z from 'zod'
import { Completeness } from '../contract/completeness.js'
import { compareIds } from '../contract/ids.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { UserIds, UserPart } from '../contract/observation.js'
import { examinable, type IdPageQuery, type PageQuery, pageOf, withRemaining } from '../contract/page.js'
import {
  addTo,
  type Finding,
  nothingFrom,
  observe,
  observeIndexed,
  toObservation,
  UserObservation,
} from './findings.js'
import { completenessOf, examinedOf, readOnce, type ViewAsk, walk } from './reading.js'
import { type UserSource, userSources } from './sightings.js'

/** A page of users. */
export const UserPage = pageOf(UserObservation).extend({ completeness: Completeness })
export type UserPage = z.infer<typeof UserPage>

/** Users of one source, ordered: at least as many as the page holds, where there are as many. */
interface Candidates extends Finding {
  ids: string[]
  /** Where the source stopped looking; nobody further on can be on the page. */
  reached: string | null
}

function checkUserIds(ids: UserIds | null | undefined, { after, limit }: IdPageQuery): UserIds | null {
  if (ids === null) return null
  if (!Array.isArray(ids) || ids.length > limit) throw new TypeError('listUserIds: not a list within its limit')
  let last = after
  for (const id of ids) {
    if (typeof id !== 'string' || (last !== null && compareIds(id, last) <= 0))
      throw new TypeError('listUserIds: not in order')
    last = id
  }
  const { reached } = ids
  if (reached !== undefined && (typeof reached !== 'string' || (last !== null && compareIds(reached, last) < 0)))
    throw new TypeError('listUserIds: reached less than it lists')
  return ids
}

/** The users of a source that lists them; of their parts nothing is known but that they are there. */
async function list(source: UserSource, page: PageQuery, view: ViewAsk): Promise<Candidates | null> {
  const { index, name } = source
  if (!index.listUserIds) return null
  // One more than the page: that is how the page knows that another follows.
  const query = { after: page.cursor, limit: Math.min(page.limit + 1, examinable(view.ask)) }
  const listed = await readOnce(name, async () => checkUserIds(await index.listUserIds?.(query, view.ask), query), view)
  if ('error' in listed) return { ids: [], reached: null, ...nothingFrom(name, listed.error) }
  const ids = listed.value
  if (ids === null) return null
  const isCut = ids.length === query.limit && query.limit <= page.limit
  const reached = ids.reached ?? (isCut ? (ids.at(-1) ?? null) : null)
  const truncated = ids.truncated === true
  const parts = new Map(ids.map((user_id): [string, UserPart] => [user_id, { user_id }]))
  const reading = { source: name, examined: examinedOf(ids, ids.length), truncated, failed: false }
  return { ids, reached, parts, exhaustive: !truncated, reading }
}

/** The users whom a walk over the entries of a source meets, with what the entries tell. */
async function sample(source: UserSource, page: PageQuery, view: ViewAsk): Promise<Candidates> {
  const parts = new Map<string, UserPart>()
  const visit = (entries: unknown[]) =>
    addTo(parts, source, entries, (id) => page.cursor === null || compareIds(id, page.cursor) > 0)
  const reading = await walk(source.name, (p, ask) => source.list({}, p, ask), view, visit)
  if (reading.failed) return { ids: [], reached: null, parts: null, reading, exhaustive: false }
  const ids = [...parts.keys()].sort(compareIds)
  return { ids, reached: null, parts, reading, exhaustive: !reading.truncated }
}

/**
 * A source's candidates with their numbers. Whoever is on the page and known to this source is among its own first
 * `page.limit` users, so no source waits for another, and one that hangs holds up none.
 */
async function find(source: UserSource, page: PageQuery, view: ViewAsk): Promise<Candidates> {
  const listed = await list(source, page, view)
  const found = listed ?? (await sample(source, page, view))
  if (!found.parts || found.ids.length === 0) return found
  const left = examinable(view.ask) - found.reading.examined
  const rest = { ...view, ask: withRemaining(view.ask, Math.max(1, left)) }
  const ids = found.ids.slice(0, page.limit)
  const counted = listed ? await observe(source, ids, rest) : await observeIndexed(source, ids, rest)
  // What a walk found has its numbers, unless an index has better ones.
  if (counted === null) return found
  const { parts, reading } = counted
  const whole = parts && !reading.truncated
  return {
    ...found,
    // Numbers that failed leave the users in hand; a user that left in between is gone.
    parts: whole ? parts : new Map([...found.parts, ...(parts ?? [])]),
    reading: {
      ...found.reading,
      examined: found.reading.examined + reading.examined,
      truncated: reading.truncated || found.reading.truncated,
    },
  }
}

/** Users in the order of their ids. `page.cursor` is the last id of the page before, or one that it looked past. */
export async function listUsers(inspectors: Inspectors, page: PageQuery, view: ViewAsk): Promise<UserPage> {
  const found = await Promise.all(userSources(inspectors).map((source) => find(source, page, view)))
  const merged = [...new Set(found.flatMap((candidates) => candidates.ids))].sort(compareIds)
  // Beyond where one source stopped, users of its own may come before those of others: they are for the next page.
  const [reached = null] = found.flatMap((candidates) => candidates.reached ?? []).sort(compareIds)
  const within = reached === null ? merged : merged.filter((id) => compareIds(id, reached) <= 0)
  const ids = within.slice(0, page.limit)
  const items = ids.map((id) => toObservation(id, found)).filter((user) => user.sources.length > 0)
  const last = within.length > ids.length ? (ids.at(-1) ?? null) : reached
  return {
    items,
    next_cursor: last,
    has_more: last !== null,
    completeness: completenessOf(
      found.map((candidates) => candidates.reading),
      view,
    ),
  }
}
