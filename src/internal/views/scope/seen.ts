/** Which users are visible, and how inspectors of any family are read for them. */

import { betweenSlices } from '../../async/turns.js'
import { invalidOption, unknownOption } from '../../contract/checks.js'
import { digest64 } from '../../contract/digest.js'
import { checkId, compareIds } from '../../contract/ids.js'
import type { UserIndex } from '../../contract/observation.js'
import {
  type Awaitable,
  type Indexed,
  type InspectionContext,
  matcherOf,
  type Page,
  type PageQuery,
  scanLimit,
  withMetadata,
} from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { budgetOf, readPage } from '../reading.js'

/** Maximum number of users of one scope, and per call to an index of users. */
const SCOPE_MAX = 500

/** The users that a caller may see. */
export interface UserScope {
  /** At most 500. */
  readonly user_ids: readonly string[]
}

/** Who is in sight. */
export interface VisibleUsers {
  /** Each once, in the order of their ids. */
  readonly users: readonly string[]
  has(userId: string): boolean
}

/** @throws TypeError for users that are no list of ids, RangeError for more than 500. */
export function parseVisibleUsers(scope: UserScope): VisibleUsers {
  const ids: unknown = scope?.user_ids
  const unknown = Object.keys(scope ?? {}).find((name) => name !== 'user_ids')
  if (unknown !== undefined) throw unknownOption('', unknown, ['user_ids'])
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string' && checkId(id) === undefined))
    throw new TypeError(invalidOption('user_ids', 'an array of ids', ids))
  const known = new Set<string>(ids)
  if (known.size > SCOPE_MAX) throw new RangeError(invalidOption('user_ids', `at most ${SCOPE_MAX} ids`, known.size))
  return { users: [...known].sort(compareIds), has: (userId) => known.has(userId) }
}

/** Refuses operations that cover all users. */
export function refuseUnscopable(): never {
  throw new Refusal('not_narrowable')
}

/** Returns `record` if its user is visible, otherwise `null`. */
export const ifVisible = <T extends { user_id?: string | null | undefined }>(
  record: T | null,
  { has }: VisibleUsers,
): T | null => (record && typeof record.user_id === 'string' && has(record.user_id) ? record : null)

/** Copies the metadata of an indexed response, without its data. */
export const indexMetadata = ({ examined, truncated }: Indexed): Indexed => ({
  ...(examined === undefined ? {} : { examined }),
  ...(truncated === undefined ? {} : { truncated }),
})

/** The one visible user that is requested. */
export function onlyUser({ users, has }: VisibleUsers, asked: string | undefined): string | null {
  if (asked !== undefined) return has(asked) ? asked : null
  return users.length === 1 ? (users[0] as string) : null
}

/**
 * The numbers that an index keeps of one whole user; `null` for any other filter. With other filters, the number of
 * examined entries would reveal records of other users.
 */
export function countOfOne<Counts>(
  seen: VisibleUsers,
  count: (filter: { user_id: string }, ctx: InspectionContext) => Awaitable<Counts | null>,
) {
  return (
    { user_id, ...others }: { user_id?: string | undefined },
    ctx: InspectionContext,
  ): Awaitable<Counts | null> => {
    const user = onlyUser(seen, user_id)
    if (user === null || Object.values(others).some((value) => value !== undefined)) return null
    return count({ user_id: user }, ctx)
  }
}

/** The index of a source over those in sight. */
export function scopeUsers(index: UserIndex, { users, has }: VisibleUsers): UserIndex {
  const { observeUsers } = index
  if (!observeUsers) return {}

  const observe: typeof observeUsers = async (userIds, ctx) => {
    const asked = userIds.filter(has)
    if (asked.length === 0) return []
    const parts = await observeUsers.call(index, asked, ctx)
    return (
      parts &&
      withMetadata(
        parts.filter(({ user_id }) => has(user_id)),
        indexMetadata(parts),
      )
    )
  }

  return {
    observeUsers: observe,
    async listUserIds({ after, limit, prefix = '' }, ctx) {
      const remaining = users.filter(
        (user) => user.startsWith(prefix) && (after === null || compareIds(user, after) > 0),
      )
      const asked = remaining.slice(0, Math.min(limit, scanLimit(ctx)))
      const parts = await observe(asked, ctx)
      if (parts === null) return null
      const known = new Set(parts.map(({ user_id }) => user_id))
      const reached = asked.length < remaining.length ? { reached: asked.at(-1) as string } : {}
      return withMetadata(
        asked.filter((user) => known.has(user)),
        { ...indexMetadata(parts), ...reached },
      )
    },
  }
}

/** Reads a value for each of `keys` of visible users; it is unknown for others. */
export function eachVisibleUser<Key, Answer>(
  { has }: VisibleUsers,
  userOf: (key: Key) => string,
  answerFor: (keys: readonly Key[], ctx: InspectionContext) => Awaitable<readonly (Answer | null)[]>,
) {
  return async (keys: readonly Key[], ctx: InspectionContext): Promise<(Answer | null)[]> => {
    const own = keys.filter((key) => has(userOf(key)))
    const answers = own.length === 0 ? [] : await answerFor(own, ctx)
    const answerByKey = new Map(own.map((key, i) => [key, answers[i] ?? null]))
    return keys.map((key) => answerByKey.get(key) ?? null)
  }
}

// Lists of some users only: one user after the other, each by the source's own filter of users.

/** The field of an entry that names its user. */
type Whose = 'user_id' | 'owner'
/** An entry; its owner may be unknown. */
type OwnedBy<By extends Whose> = { readonly [Name in By]?: string | null | undefined }
/** A filter for one user. */
type OfOne<By extends Whose> = { readonly [Name in By]: string }
type FilterBy<By extends Whose> = { readonly [Name in By]?: string | undefined }

type List<T, F> = (filter: F, page: PageQuery, ctx: InspectionContext) => Awaitable<Page<T>>

/** Position of a page: the user, and the cursor within the entries of that user. */
interface Place {
  at: number
  cursor: string | null
}

// A digest of the visible users, the index of one of them, and the cursor of the source, absent at the start of a user.
const TOKEN = /^([0-9a-f]{8})\.(0|[1-9][0-9]{0,2})(?:\.(.*))?$/s

/** `listOwned` for entries with a `user_id`. */
export function listOfUsers<T extends OwnedBy<'user_id'>, F extends FilterBy<'user_id'>>(
  users: readonly string[],
  list: List<T, OfOne<'user_id'>>,
  isOf?: (entry: T) => boolean,
  admits?: (filter: Omit<F, 'user_id'>, entry: T) => boolean,
): List<T, F> {
  return listOwned<'user_id', T, F>('user_id', users, list, isOf, admits)
}

/**
 * Lists the entries of `users` with `list`, user by user, and within one user in the order of the page; all of it
 * reversed for newest first. The source is called for one user at a time and for all entries of that user; other
 * filters are applied to the result. So skipped records, costs and empty pages reveal nothing about other users. A
 * cursor is up to 13 bytes longer than that of the source, and is valid for the same users only.
 *
 * @param by The field of an entry, and of a filter, that names the user.
 * @param isOf Whether an entry with that user is visible.
 * @param admits Whether the filter, without its user, matches an entry. Default: it has the same values under the same
 * names.
 */
export function listOwned<By extends Whose, T extends OwnedBy<By>, F extends FilterBy<By>>(
  by: By,
  users: readonly string[],
  list: List<T, OfOne<By>>,
  isOf: (entry: T) => boolean = () => true,
  admits: (filter: Omit<F, By>, entry: T) => boolean = (filter, entry) => matcherOf(filter)(entry),
): List<T, F> {
  const scope = digest64(JSON.stringify(users)).slice(0, 8)

  function parseToken(token: string): Place {
    const [, of, at, cursor = null] = TOKEN.exec(token) ?? []
    if (of !== scope) throw new Refusal('invalid_cursor')
    return { at: Number(at), cursor }
  }

  return async (filter, page, ctx) => {
    const { [by]: only, ...others } = filter
    const first = only === undefined ? 0 : users.indexOf(only)
    // A user who is not visible has no entries.
    const end = only === undefined ? users.length : first < 0 ? first : first + 1
    const isNewest = page.order === 'newest'
    const isWithin = (place: number) => place >= first && place < end
    const start = isNewest ? end - 1 : first
    let { at, cursor } = page.cursor === null ? { at: start, cursor: null } : parseToken(page.cursor)
    if (page.cursor !== null && !isWithin(at)) throw new Refusal('invalid_cursor')
    const budget = budgetOf({ ctx })
    const before = budget.entries
    const items: T[] = []
    let omitted = 0
    while (isWithin(at)) {
      const user_id = users[at] as string
      const ofUser = (query: PageQuery, asking: InspectionContext) =>
        list({ [by]: user_id } as OfOne<By>, { ...query, order: page.order }, asking)
      const listed: Page<T> = await readPage(ofUser, cursor, page.limit - items.length, budget, { ctx })
      // Invalid records belong to no user.
      for (const entry of listed.items)
        if (entry?.[by] === user_id && isOf(entry) && admits(others, entry)) items.push(entry)
      omitted += listed.omitted ?? 0
      const isStuck = listed.has_more && listed.next_cursor === cursor
      cursor = listed.has_more ? listed.next_cursor : null
      if (!listed.has_more) at += isNewest ? -1 : 1
      if (isStuck || items.length === page.limit || budget.entries <= 0 || budget.pages <= 0 || !isWithin(at)) break
      await betweenSlices(ctx)
    }
    const has_more = isWithin(at)
    return {
      items,
      next_cursor: has_more ? `${scope}.${at}${cursor === null ? '' : `.${cursor}`}` : null,
      has_more,
      examined: before - budget.entries,
      ...(omitted > 0 ? { omitted } : {}),
    }
  }
}
