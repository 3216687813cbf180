/** The users view: who is known to any source, a page at a time. */

import type * as z from 'zod'
import { inTurns, type Steps } from '../async/turns.js'
import { Completeness } from '../contract/capabilities.js'
import { shown } from '../contract/checks.js'
import type { Inspectors } from '../contract/families.js'
import { compareIds } from '../contract/ids.js'
import type { UserIds, UserPart } from '../contract/observation.js'
import { type IdPageQuery, type PageQuery, pageSchema, scanLimit, withScanBudget } from '../contract/page.js'
import { completenessOf, examinedOf, joinReadings, readOnce, type SourceReading, type ViewContext } from './reading.js'
import {
  type KnownUsers,
  observe,
  partsOf,
  readEntries,
  readIndex,
  readUsers,
  UserObservation,
  type UserReading,
  type UserSource,
  userSources,
  viewForList,
} from './user-observation.js'

/** A page of users. */
export const UserPage = pageSchema(UserObservation)
  .extend({ completeness: Completeness.describe('What this response may be missing.') })
  .describe('One page of users.')
export type UserPage = z.infer<typeof UserPage>

/** A page of users whose ids begin with `prefix`. */
type UserPageQuery = PageQuery & Pick<IdPageQuery, 'prefix'>

/** Users of one source, sorted: at least a full page if there are enough. */
interface Candidates extends KnownUsers {
  readonly ids: string[]
  /** Where the source stopped; no later user can be on the page. */
  readonly reached: string | null
}

function checkUserIds(ids: UserIds | null | undefined, { after, limit, prefix = '' }: IdPageQuery): UserIds | null {
  if (ids === null) return null
  if (!Array.isArray(ids)) throw new TypeError(`listUserIds answered ${shown(ids)}, not a list`)
  if (ids.length > limit) throw new TypeError(`listUserIds answered ${ids.length} ids for a limit of ${limit}`)
  let last = after
  for (const [i, id] of ids.entries()) {
    if (typeof id !== 'string' || (last !== null && compareIds(id, last) <= 0))
      throw new TypeError(
        `listUserIds: id ${i} must be greater than the one before it, and than the end of the page before`,
      )
    if (!id.startsWith(prefix)) throw new TypeError(`listUserIds: id ${i} must begin with the prefix of the page`)
    last = id
  }
  const { reached } = ids
  if (reached !== undefined && (typeof reached !== 'string' || (last !== null && compareIds(reached, last) < 0)))
    throw new TypeError('listUserIds: `reached` must not be less than the last id that it lists')
  return ids
}

/** The users of a source that lists them; of their parts nothing is known but that they are there. */
async function list(
  source: UserSource,
  page: UserPageQuery,
  view: ViewContext,
): Promise<SourceReading<Candidates> | null> {
  const { index, name } = source
  // One more than the page: that is how the page knows that another follows.
  const { prefix } = page
  const limit = Math.min(page.limit + 1, scanLimit(view.ctx))
  const query = { after: page.cursor, limit, ...(prefix === undefined ? {} : { prefix }) }
  const readIds = async () => (index.listUserIds ? checkUserIds(await index.listUserIds(query, view.ctx), query) : null)
  const reading = await readOnce(name, readIds, view, (ids) => examinedOf(ids, ids.length))
  if (!reading?.value) return reading as SourceReading<never> | null
  const ids = reading.value
  const isTruncated = ids.length === query.limit && query.limit <= page.limit
  const reached = ids.reached ?? (isTruncated ? (ids.at(-1) ?? null) : null)
  const parts = new Map(ids.map((user_id): [string, UserPart] => [user_id, { user_id }]))
  return { ...reading, value: { ids, reached, parts, exhaustive: !reading.truncated } }
}

/** Reads users from a walk over the entries of a source. */
async function sample(
  source: UserSource,
  { cursor, prefix = '' }: UserPageQuery,
  view: ViewContext,
): Promise<SourceReading<Candidates>> {
  const reading = await readEntries(
    source,
    view,
    (id) => id.startsWith(prefix) && (cursor === null || compareIds(id, cursor) > 0),
  )
  const { value } = reading
  return { ...reading, value: value && { ...value, ids: [...value.parts.keys()].sort(compareIds), reached: null } }
}

/**
 * Reads a source's candidates with their numbers. Users on the page that this source knows are among its first
 * `page.limit` users, so no source waits for another, and one that hangs does not delay others.
 */
async function find(source: UserSource, page: UserPageQuery, asked: ViewContext): Promise<SourceReading<Candidates>> {
  const own = viewForList(asked, source)
  const view = { ...own, ctx: withScanBudget(own.ctx, Math.min(scanLimit(own.ctx), source.walkMax)) }
  const listed = await list(source, page, view)
  const found = listed ?? (await sample(source, page, view))
  if (!found.value?.ids.length) return found
  const remaining = scanLimit(view.ctx) - found.examined
  const rest = { ...view, ctx: withScanBudget(view.ctx, Math.max(1, remaining)) }
  const ids = found.value.ids.slice(0, page.limit)
  const counted = listed ? await readUsers(source, ids, rest) : await readIndex(source, ids, rest)
  // Users from a walk already have numbers, unless an index has better ones.
  if (counted === null) return found
  const numbers = counted.value?.parts ?? new Map()
  // If the numbers fail, the users stay; a user that left meanwhile is dropped.
  const parts = counted.truncated ? new Map([...found.value.parts, ...numbers]) : numbers
  return { ...joinReadings(found, counted), value: { ...found.value, parts } }
}

function* observed(ids: readonly string[], found: readonly UserReading[]): Steps<ReturnType<typeof observe>[]> {
  const users: ReturnType<typeof observe>[] = []
  for (const id of ids) {
    users.push(observe(id, partsOf(id, found)))
    yield
  }
  return users
}

/** Lists users in the order of their ids. `page.cursor` is the last id that the page before returned or skipped. */
export async function listUsers(inspectors: Inspectors, page: UserPageQuery, view: ViewContext): Promise<UserPage> {
  const found = await Promise.all(userSources(inspectors).map((source) => find(source, page, view)))
  const candidates = found.flatMap(({ value }) => value ?? [])
  const merged = [...new Set(candidates.flatMap(({ ids }) => ids))].sort(compareIds)
  // After the position where one source stopped, its users may come before those of others: they belong to the next
  // page.
  const [reached = null] = candidates.flatMap(({ reached }) => reached ?? []).sort(compareIds)
  const inReach = reached === null ? merged : merged.filter((id) => compareIds(id, reached) <= 0)
  const ids = inReach.slice(0, page.limit)
  const users = await inTurns(observed(ids, found), view.ctx)
  const last = inReach.length > ids.length ? (ids.at(-1) ?? null) : reached
  return {
    items: users.map(({ user }) => user).filter((user) => user.sources.length > 0),
    next_cursor: last,
    has_more: last !== null,
    completeness: completenessOf(
      found,
      view,
      users.flatMap(({ cut }) => cut),
    ),
  }
}
