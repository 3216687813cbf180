/** What an index over users promises: all users, in order, and the numbers that a walk would have found. */
import type { UserEntries } from '../contract/family.js'
import { compareIds } from '../contract/ids.js'
import { foldAll, type UserIds, type UserIndex, type UserPart } from '../contract/observation.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'
import { ASK, check, checkEnds, checkEqual, notTested, type Promised } from './expect.js'
import { NOBODY } from './filters.js'
import { type MakeInspector, NO_PAGE, walk } from './lists.js'

type Entry = { user_id: string }

// What `observeUsers` takes at once.
const OBSERVED_USERS = 500

/** The cases of a source's user index; a source without one passes them. */
export function userCases(make: MakeInspector<UserIndex>, { list, fold }: UserEntries): Promised[] {
  const of = (work: (inspector: UserIndex, byUser: Map<string, Entry[]>) => Promise<void>) => async () => {
    const inspector = await make()
    if (!inspector) return notTested('there is no such inspector')
    const byUser = new Map<string, Entry[]>()
    const listed: unknown = Reflect.get(inspector, list)
    const page = (query: PageQuery, ask: Ask): Awaitable<Page<Entry>> =>
      typeof listed === 'function' ? listed.call(inspector, {}, query, ask) : NO_PAGE
    for (const entry of await walk(page, 100, 'the list of its entries'))
      byUser.set(entry.user_id, [...(byUser.get(entry.user_id) ?? []), entry])
    await work(inspector, byUser)
  }
  return [
    {
      name: 'listUserIds lists every user once, in the order of UTF-8 bytes, whatever the limit',
      run: of(async (inspector, byUser) => {
        if (!inspector.listUserIds) return notTested('there is no listUserIds')
        const expected = [...byUser.keys()].sort(compareIds)
        for (const limit of [1, 2, 100]) {
          const ids: string[] = []
          for (let after: string | null = null; ; after = ids.at(-1) as string) {
            const found: UserIds | null = await inspector.listUserIds({ after, limit }, ASK)
            if (found === null) return notTested('no index answers listUserIds')
            check(found.length <= limit, `listUserIds answered ${found.length} users for a limit of ${limit}`)
            ids.push(...found)
            check(
              ids.length <= expected.length,
              `listUserIds lists ${ids.length} users, and ${expected.length} have entries`,
            )
            if (found.length < limit) break
          }
          checkEqual(ids, expected, `listUserIds with a limit of ${limit}`)
        }
        await checkEnds((ask) => inspector.listUserIds?.({ after: null, limit: 1 }, ask), 'listUserIds')
      }),
    },
    {
      name: 'observeUsers says of each user what a walk over its entries says',
      run: of(async (inspector, byUser) => {
        if (!inspector.observeUsers) return notTested('there is no observeUsers')
        const ids = [...byUser.keys()].slice(0, OBSERVED_USERS - 1)
        const observed = await inspector.observeUsers([...ids, NOBODY], ASK)
        if (observed === null) return notTested('no index answers observeUsers')
        const parts = new Map(observed.map((part) => [part.user_id, part]))
        check(!parts.has(NOBODY), 'observeUsers must not know a user that nobody is')
        for (const userId of ids) {
          const part = parts.get(userId)
          check(part !== undefined, `observeUsers must know ${userId}, whom listUserIds lists`)
          if (part && !part.truncated)
            // A registry may remember the last sign of life for longer than the connection that gave it.
            for (const [field, told] of Object.entries({
              ...foldAll(fold, byUser.get(userId) ?? []),
              last_seen_at: null,
            }))
              if (told !== null)
                checkEqual(plain(part[field as keyof UserPart]), plain(told), `observeUsers: ${field} of ${userId}`)
        }
        await checkEnds((ask) => inspector.observeUsers?.(ids, ask), 'observeUsers')
      }),
    },
  ]
}

/** A list of names in order, and a map without its zeros; anything else as it is. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Symbol.iterator in value) return [...(value as Iterable<string>)].sort(compareIds)
  return Object.fromEntries(Object.entries(value).filter(([, count]) => count !== 0))
}
