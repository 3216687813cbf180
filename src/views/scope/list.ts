/** Lists of some users only: one user after the other, each by the source's own filter of users. */
import { betweenSlices } from '../../async/turns.js'
import { digest64 } from '../../contract/digest.js'
import { type Awaitable, type InspectionContext, matcherOf, type Page, type PageQuery } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { budgetOf, readPage } from '../reading.js'

/** The field by which an entry is somebody's. */
type Whose = 'user_id' | 'owner'
/** An entry; nobody's where its owner is not known. */
type OwnedBy<By extends Whose> = { readonly [Name in By]: string | null }
/** What a source is asked for. */
type OfOne<By extends Whose> = { readonly [Name in By]: string }
type FilterBy<By extends Whose> = { readonly [Name in By]?: string | undefined }

type List<T, F> = (filter: F, page: PageQuery, ctx: InspectionContext) => Awaitable<Page<T>>

/** Where a page goes on: at which user, and after what of theirs. */
interface Place {
  at: number
  cursor: string | null
}

// Whose users they are, which of them, and the source's own token, which there is none of where a user begins.
const TOKEN = /^([0-9a-f]{8})\.(0|[1-9][0-9]{0,2})(?:\.(.*))?$/s

/** `listOwned` of what names its user as such. */
export function listOfUsers<T extends OwnedBy<'user_id'>, F extends FilterBy<'user_id'>>(
  users: readonly string[],
  list: List<T, OfOne<'user_id'>>,
  isOf?: (entry: T) => boolean,
  admits?: (filter: Omit<F, 'user_id'>, entry: T) => boolean,
): List<T, F> {
  return listOwned<'user_id', T, F>('user_id', users, list, isOf, admits)
}

/**
 * `list` of the entries of `users`, in the order of these, and of one user in the order of the page; all of it
 * backwards where the newest come first. A source is asked for one user at a time and for all of theirs; other
 * filters are applied to what it answers. Whatever it passes over is then nobody else's, and neither a cost nor an empty page
 * tells of others. A token is up to 13 bytes longer than the source's, and goes on among the same users alone.
 *
 * @param by The field of an entry, and of a filter, that names the user.
 * @param isOf Whether an entry that names the user is theirs.
 * @param admits Whether the filter, which names no user, admits an entry. Default: it has the same values under the same names.
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
    // Of somebody who is not in sight there is nothing.
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
      // What is no record is nobody's.
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
