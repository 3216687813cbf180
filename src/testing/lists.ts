/** What every list of every inspector promises: walks that end, limits, filters, tokens, records by id. */

import type { UserEntries } from '../contract/family.js'
import { compareIds, utf8Length } from '../contract/ids.js'
import { EXAMINED_MAX, TOKEN_BYTES } from '../contract/limits.js'
import { foldAll, type UserIds, type UserIndex, type UserPart } from '../contract/observation.js'
import {
  type Awaitable,
  type InspectionContext,
  matcherOf,
  type Order,
  type Page,
  type PageQuery,
} from '../contract/page.js'
import {
  CONTEXT,
  ContractBroken,
  check,
  checkEnds,
  checkEntries,
  checkEqual,
  checkExact,
  checkSchema,
  comparableText,
  differenceOfIds,
  notTested,
  orRefusal,
  type Promised,
  type Schema,
} from './expect.js'

// What the suites ask an inspector for: values that its entries have, and some that none has.

/** An id that no entry has. */
export const UNKNOWN_ID = 'no-such-entry-4f1d'

/** Values of a filter and records by id that are tried; more would only take longer. */
export const IDS_TRIED = 20

/** Filters worth trying: every value that occurs, one that no entry has, and all values of one entry together. */
export function filtersIn<Item extends object>(
  entries: readonly Item[],
  fields: readonly (keyof Item & string)[],
): Partial<Item>[] {
  const found: Partial<Item>[] = []
  for (const field of fields) {
    const values = [...new Set(entries.map((entry) => entry[field]))].filter((value) => value !== null)
    for (const value of values.slice(0, IDS_TRIED)) found.push({ [field]: value } as unknown as Partial<Item>)
    if (field.endsWith('_id')) found.push({ [field]: UNKNOWN_ID } as unknown as Partial<Item>)
  }
  const last = entries.at(-1)
  if (last)
    found.push(
      Object.fromEntries(
        fields.filter((field) => last[field] !== null).map((field) => [field, last[field]]),
      ) as Partial<Item>,
    )
  return found
}

const APART_MS = 86_400_000
// A live inspector may work out a time anew, and differ by that much.
const CLEAR_MS = 2_000

/** Filters by a time: before all entries, behind all of them, and between some where none is near. */
function timesIn<Item extends object>(entries: readonly Item[], field: (keyof Item & `${string}_at`) | undefined) {
  if (field === undefined || entries.length === 0) return []
  const times = entries.map((entry) => Date.parse(String(entry[field]))).sort((a, b) => a - b)
  const [first = 0, last = 0] = [times[0], times.at(-1)]
  const gap = times.findIndex((time, i) => i > 0 && time - (times[i - 1] as number) > 2 * CLEAR_MS)
  const between = gap < 0 ? [] : [(times[gap] as number) - CLEAR_MS]
  return [first - APART_MS, ...between, last + APART_MS].map(
    (time) => ({ [field.replace(/_at$/, '_before')]: new Date(time).toISOString() }) as Partial<Item>,
  )
}

/** Makes the inspector under test, with the same entries each time; nothing where it is absent. */
export type MakeInspector<Inspector> = () => Awaitable<Inspector | undefined>

type List<Item> = (page: PageQuery, ctx: InspectionContext) => Awaitable<Page<Item>>

// With empty pages a walk may take more pages than it has entries, but not without end.
const PAGES_MAX = 10_000

/** All items of a list. @throws ContractBroken for pages that break a promise of `Page`, and for a walk without end. */
export async function walk<Item>(list: List<Item>, limit: number, what: string): Promise<Item[]> {
  const items: Item[] = []
  const tokens = new Set<string>()
  let cursor: string | null = null
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = { limit, cursor }
    const answer = await orRefusal(() => list(query, CONTEXT), what, 'unavailable')
    if ('code' in answer) throw new ContractBroken(`${what} refused a walk with ${answer.code}`)
    const page: Page<Item> = answer.value
    checkPage(page, limit, what)
    items.push(...page.items)
    if (!page.has_more) return items
    cursor = page.next_cursor as string
    check(!tokens.has(cursor), `${what} handed out the same token twice in one walk`)
    tokens.add(cursor)
  }
  check(false, `${what} did not end within ${PAGES_MAX} pages`)
  return items
}

function checkPage(page: Page<unknown>, limit: number, what: string): void {
  check(Array.isArray(page?.items) && typeof page.has_more === 'boolean', `${what} did not answer a page`)
  checkExamined(page, EXAMINED_MAX, what)
  check(page.items.length <= limit, `${what} answered ${page.items.length} items for a limit of ${limit}`)
  if (!page.has_more) return
  const token = page.next_cursor
  check(typeof token === 'string' && token.isWellFormed(), `${what} has more, and must have a well-formed next_cursor`)
  check(
    utf8Length(token as string) <= TOKEN_BYTES,
    `${what} has a token of ${utf8Length(token as string)} bytes, at most ${TOKEN_BYTES}`,
  )
}

// A bound as a host may lower it to.
const BOUND = 12

/** @throws ContractBroken for a page that says of its cost what cannot be, or more than it may cost. */
function checkExamined({ examined, items }: Page<unknown>, bound: number, what: string): void {
  if (examined === undefined) return
  // One entry may give several items: a connection offers many actions.
  const isPossible = Number.isSafeInteger(examined) && examined >= (items.length > 0 ? 1 : 0)
  check(isPossible, `${what} says that it examined ${examined} entries`)
  check(examined <= bound, `${what} examined ${examined} entries where ${bound} were allowed`)
}

const shorten = (ids: readonly string[]) => (ids.length > 5 ? `${ids.slice(0, 5).join(', ')}, …` : ids.join(', '))

const LIMITS = [1, 2, 100]

/**
 * Walks with several limits; they must show the same entries. Answers those of the last, in its order.
 *
 * @param idOf What no two entries share. Without it the order is a promise, and is held too.
 */
export async function walkAll<Item>(list: List<Item>, what: string, idOf?: (entry: Item) => string): Promise<Item[]> {
  let whole: Item[] | undefined
  for (const limit of LIMITS) {
    const items = await walk(list, limit, what)
    const promise = `${what} shows other entries with a limit of ${limit}`
    if (whole && idOf) checkEntries(items.map(steady), whole.map(steady), idOf, promise)
    else if (whole) checkEqual(items, whole, promise)
    whole = items
  }
  return whole ?? []
}

// Ages run on between two walks of a live inspector.
const VOLATILE = ['age_ms', 'staleness_ms', 'observed_at']

/** A record without what passes with time. */
function steady<T>(record: T): T {
  if (record === null || typeof record !== 'object') return record
  return Object.fromEntries(Object.entries(record).filter(([name]) => !VOLATILE.includes(name))) as T
}

/** One list of an inspector. */
interface ListContract<Inspector, Item extends object> {
  /** The method, as it is named in errors. */
  name: string
  /** The method under a filter, or nothing where the inspector lacks it. */
  list(inspector: Inspector, filter: Partial<Item>): List<Item> | undefined
  item: Schema
  /** Refuse fields that the schema does not name. */
  exact?: boolean
  /** The field that no two entries share, or what is made of several. */
  id: (keyof Item & string) | ((entry: Item) => string)
  /** Whether pages of the list have an order. @default false */
  ordered?: true
  /** Fields that the list can be filtered by. */
  filters?: readonly (keyof Item & string)[]
  /** The time that the list can be filtered by, as `<name>_before`: only entries with a `<name>_at` at or before it. */
  before?: keyof Item & `${string}_at`
  /** The method that finds one entry. */
  get?(inspector: Inspector, id: string, ctx: InspectionContext): Awaitable<Item | null>
}

/** What there is of a list that an inspector has not. */
export const NO_PAGE: Page<never> = { items: [], next_cursor: null, has_more: false }

const MALFORMED = [
  '',
  'x',
  '-1',
  '1.5',
  '0x10',
  '../..',
  '*',
  '{}',
  '99999999999999999999999',
  '\u{1F4A5}',
  'z'.repeat(360),
]

/** The cases of one list. */
export function listCases<Inspector, Item extends object>(
  make: MakeInspector<Inspector>,
  contract: ListContract<Inspector, Item>,
): Promised[] {
  const { name, id, item, filters = [], before, get } = contract
  const idOf = (entry: Item) => (typeof id === 'function' ? id(entry) : String(entry[id]))
  const of =
    (work: (whole: List<Item>, inspector: Inspector) => Promise<void>): (() => Promise<void>) =>
    async () => {
      const inspector = await make()
      const whole = inspector && contract.list(inspector, {})
      if (!inspector || !whole) return notTested(`there is no ${name}`)
      await work(whole, inspector)
    }
  const under = (inspector: Inspector, filter: Partial<Item>) => contract.list(inspector, filter) as List<Item>
  const cases: Promised[] = [
    {
      name: `${name} ends and shows each entry once, whatever the limit`,
      run: of(async (whole) => {
        const ids = (await walkAll(whole, name, idOf)).map(idOf)
        const twice = differenceOfIds(ids, ids)
        check(twice === undefined, `${name} shows entries ${twice}`)
      }),
    },
    {
      name: `${name} answers what its schema says`,
      run: of(async (whole) => {
        for (const entry of await walk(whole, 100, name))
          (contract.exact ? checkExact : checkSchema)(item, entry, `${name}: ${idOf(entry)}`)
      }),
    },
    {
      name: `${name} refuses a token that is not its own, or takes no harm from it`,
      run: of(async (whole) => {
        const known = new Set((await walk(whole, 100, name)).map(idOf))
        for (const cursor of MALFORMED) {
          const answer = await orRefusal(
            () => whole({ limit: 2, cursor }, CONTEXT),
            `${name} for the token ${JSON.stringify(cursor)}`,
            'invalid_cursor',
          )
          if ('code' in answer) {
            checkEqual(answer.code, 'invalid_cursor', `${name} refuses a malformed token with`)
            continue
          }
          checkPage(answer.value, 2, name)
          for (const entry of answer.value.items)
            check(known.has(idOf(entry)), `${name} must not make an entry of a token`)
        }
      }),
    },
    {
      name: `${name} looks at no more than it is told to, and at no less than it shows`,
      run: of(async (whole) => {
        for (const examined of [BOUND, EXAMINED_MAX])
          checkExamined(await whole({ limit: 5, cursor: null }, { ...CONTEXT, limits: { examined } }), examined, name)
        const left: InspectionContext = { ...CONTEXT, limits: { examined: EXAMINED_MAX }, scanBudget: BOUND }
        checkExamined(await whole({ limit: 5, cursor: null }, left), BOUND, name)
      }),
    },
    {
      name: `${name} ends when its signal is aborted`,
      run: of((whole) => checkEnds((ctx) => whole({ limit: 1, cursor: null }, ctx), name)),
    },
  ]
  if (contract.ordered)
    cases.push({
      name: `${name} shows the newest first, or the oldest first, as its page says`,
      run: of(async (whole, inspector) => {
        const oldest = await checkOrders(whole, name, idOf)
        for (const filter of filtersIn(oldest, filters).slice(0, IDS_TRIED))
          await checkOrders(under(inspector, filter), `${name} under ${comparableText(filter)}`, idOf)
      }),
    })
  if (filters.length > 0)
    cases.push({
      name: `${name} answers exactly the entries that match its filters`,
      run: of(async (whole, inspector) => {
        const entries = await walk(whole, 100, name)
        for (const filter of [...filtersIn(entries, filters), ...timesIn(entries, before)]) {
          const expected = entries.filter((entry) => matches(entry, filter))
          const found = await walk(under(inspector, filter), 2, name)
          checkEntries(found.map(steady), expected.map(steady), idOf, `${name} under ${comparableText(filter)}`)
        }
      }),
    })
  if (get)
    cases.push({
      name: `${name}: an entry asked for by its id is the one that is listed, and an unknown one is null`,
      run: of(async (whole, inspector) => {
        await checkRecords(await walk(whole, 100, name), (id, ctx) => get(inspector, id, ctx), name, idOf)
      }),
    })
  return cases
}

/** @throws ContractBroken unless `get` returns the entries as they are listed, and `null` for an unknown id. */
async function checkRecords<Item extends object>(
  entries: readonly Item[],
  get: (id: string, ctx: InspectionContext) => Awaitable<Item | null>,
  what: string,
  idOf: (entry: Item) => string,
): Promise<void> {
  for (const entry of entries.slice(0, IDS_TRIED)) {
    const found = await get(idOf(entry), CONTEXT)
    checkEqual(steady(found), steady(entry), `the entry ${idOf(entry)} by its id`)
  }
  const known = new Set(entries.map(idOf))
  for (const unknown of [UNKNOWN_ID, '__proto__', 'constructor'].filter((candidate) => !known.has(candidate)))
    check((await get(unknown, CONTEXT)) === null, `the answer for ${unknown}, who does not exist, must be null`)
  await checkEnds((ctx) => get(UNKNOWN_ID, ctx), `${what} by id`)
}

/** The entries, oldest first. @throws ContractBroken unless the list is the same backwards with the newest first. */
async function checkOrders<Item>(list: List<Item>, what: string, idOf: (entry: Item) => string): Promise<Item[]> {
  const inOrder = (order: Order) => {
    const ordered: List<Item> = (page, ctx) => list({ ...page, order }, ctx)
    return walkAll(ordered, `${what}, ${order} first`, idOf)
  }
  const oldest = await inOrder('oldest')
  const [first, last] = [(await inOrder('newest')).map(idOf), oldest.map(idOf)]
  check(
    first.join('\n') === last.toReversed().join('\n'),
    `${what}: the newest first are ${shorten(first)}, and the oldest first are ${shorten(last)}`,
  )
  return oldest
}

const matches = (entry: object, filter: object) => matcherOf({ ...filter })(entry)

// What an index over users promises: all users, in order, and the numbers that a walk would have found.

type Entry = { user_id: string }

// What `observeUsers` takes at once.
const OBSERVED_USERS = 500

/** A whole id, the beginning of another one, and what no id begins with. */
const prefixesIn = (ids: readonly string[]): string[] => [
  ...ids.slice(0, 2),
  ...ids.slice(-2).map((id) => [...id].slice(0, 1).join('')),
  UNKNOWN_ID,
]

/** The cases of a source's user index; a source without one passes them. */
export function userCases(make: MakeInspector<UserIndex>, { list, fold }: UserEntries): Promised[] {
  const of = (work: (inspector: UserIndex, byUser: Map<string, Entry[]>) => Promise<void>) => async () => {
    const inspector = await make()
    if (!inspector) return notTested('there is no such inspector')
    const byUser = new Map<string, Entry[]>()
    const listed: unknown = Reflect.get(inspector, list)
    const page = (query: PageQuery, ctx: InspectionContext): Awaitable<Page<Entry>> =>
      typeof listed === 'function' ? listed.call(inspector, {}, query, ctx) : NO_PAGE
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
            const found: UserIds | null = await inspector.listUserIds({ after, limit }, CONTEXT)
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
        for (const prefix of prefixesIn(expected)) {
          const found = await inspector.listUserIds({ after: null, limit: 500, prefix }, CONTEXT)
          const wanted = expected.filter((id) => id.startsWith(prefix)).slice(0, 500)
          checkEqual(found, wanted, `listUserIds with the prefix ${JSON.stringify(prefix)}`)
        }
        await checkEnds((ctx) => inspector.listUserIds?.({ after: null, limit: 1 }, ctx), 'listUserIds')
      }),
    },
    {
      name: 'observeUsers says of each user what a walk over its entries says',
      run: of(async (inspector, byUser) => {
        if (!inspector.observeUsers) return notTested('there is no observeUsers')
        const ids = [...byUser.keys()].slice(0, OBSERVED_USERS - 1)
        const observed = await inspector.observeUsers([...ids, UNKNOWN_ID], CONTEXT)
        if (observed === null) return notTested('no index answers observeUsers')
        const parts = new Map(observed.map((part) => [part.user_id, part]))
        check(!parts.has(UNKNOWN_ID), 'observeUsers must not know a user that nobody is')
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
        await checkEnds((ctx) => inspector.observeUsers?.(ids, ctx), 'observeUsers')
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
