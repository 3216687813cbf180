/** Lists of some users only: one user after the other, each by the source's own filter of users. */
import { betweenSlices } from '../../async/turns.js'
import { digest64 } from '../../contract/digest.js'
import { type Awaitable, type InspectionContext, matcherOf, type Page, type PageQuery } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { budgetOf, readPage } from '../reading.js'

/** The field of an entry that names its user. */
type Whose = 'user_id' | 'owner'
/** An entry; its owner may be unknown. */
type OwnedBy<By extends Whose> = { readonly [Name in By]: string | null }
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
