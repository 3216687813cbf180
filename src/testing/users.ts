/** What an index over users promises: all users, in order, and the numbers that a walk would have found. */
import { compareIds } from '../contract/ids.js'
import { type Tell, tellAll, type UserIds, type UserIndex, type UserPart } from '../contract/observation.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'
import { ASK, type ContractCase, check, checkEqual, checkSettles } from './expect.js'
import { type MakeInspector, NOBODY, walk } from './lists.js'

/** How a source's entries make up what its index says of a user. */
export interface UserContract<Inspector, Item> {
  list(inspector: Inspector, page: PageQuery, ask: Ask): Awaitable<Page<Item>> | undefined
  tell: Tell<Item>
}

// What `observeUsers` takes at once.
const OBSERVED_USERS = 500

/** The cases of a source's user index; a source without one passes them. */
export function userCases<Inspector extends UserIndex, Item extends { user_id: string }>(
  make: MakeInspector<Inspector>,
  { list, tell }: UserContract<Inspector, Item>,
): ContractCase[] {
  const of = (work: (inspector: Inspector, byUser: Map<string, Item[]>) => Promise<void>) => async () => {
    const inspector = await make()
    if (!inspector) return
    const byUser = new Map<string, Item[]>()
    const page = (query: PageQuery, ask: Ask) =>
      list(inspector, query, ask) ?? { items: [], next_cursor: null, has_more: false }
    for (const entry of await walk(page, 100, 'the list of its entries'))
      byUser.set(entry.user_id, [...(byUser.get(entry.user_id) ?? []), entry])
    await work(inspector, byUser)
  }
  return [
    {
      name: 'listUserIds lists every user once, in the order of UTF-8 bytes, whatever the limit',
      run: of(async (inspector, byUser) => {
        if (!inspector.listUserIds) return
        const expected = [...byUser.keys()].sort(compareIds)
        for (const limit of [1, 2, 100]) {
          const ids: string[] = []
          for (let after: string | null = null; ; after = ids.at(-1) as string) {
            const found: UserIds | null = await inspector.listUserIds({ after, limit }, ASK)
            if (found === null) return
            check(found.length <= limit, `listUserIds answered ${found.length} users for a limit of ${limit}`)
            ids.push(...found)
            check(ids.length <= expected.length, 'listUserIds lists a user twice, or one without an entry')
            if (found.length < limit) break
          }
          checkEqual(ids, expected, `listUserIds with a limit of ${limit}`)
        }
        await checkSettles((ask) => inspector.listUserIds?.({ after: null, limit: 1 }, ask), 'listUserIds')
      }),
    },
    {
      name: 'observeUsers says of each user what a walk over its entries says',
      run: of(async (inspector, byUser) => {
        if (!inspector.observeUsers) return
        const asked = [...byUser.keys()].slice(0, OBSERVED_USERS - 1)
        const observed = await inspector.observeUsers([...asked, NOBODY], ASK)
        if (observed === null) return
        const parts = new Map(observed.map((part) => [part.user_id, part]))
        check(!parts.has(NOBODY), 'observeUsers knows a user that it does not list')
        for (const userId of asked) {
          const part = parts.get(userId)
          check(part !== undefined, `observeUsers knows nothing of ${userId}, whom it lists`)
          if (part && !part.truncated)
            // A registry may remember the last sign of life for longer than the connection that gave it.
            for (const [field, told] of Object.entries({
              ...tellAll(tell, byUser.get(userId) ?? []),
              last_seen_at: null,
            }))
              if (told !== null)
                checkEqual(plain(part[field as keyof UserPart]), plain(told), `observeUsers: ${field} of ${userId}`)
        }
        await checkSettles((ask) => inspector.observeUsers?.(asked, ask), 'observeUsers')
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
