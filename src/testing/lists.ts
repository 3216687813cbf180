/** Contract of every list: complete walks, limits, filters, cursors, and records by id. */

import type { UserEntries } from '../internal/contract/family.js'
import { compareIds, utf8Length } from '../internal/contract/ids.js'
import { EXAMINED_MAX, TOKEN_BYTES } from '../internal/contract/limits.js'
import { foldAll, type UserIds, type UserIndex, type UserPart } from '../internal/contract/observation.js'
import {
  type Awaitable,
  fieldOfFilter,
  type InspectionContext,
  matcherOf,
  type Order,
  type Page,
  type PageQuery,
  valueOfFilter,
} from '../internal/contract/page.js'
import {
  CONTEXT,
  ContractBroken,
  check,
  checkEnds,
  checkEntries,
  checkEqual,
  checkExact,
  checkKnown,
  checkSchema,
  comparableText,
  differenceOfIds,
  notTested,
  orRefusal,
  type Promised,
  type Schema,
} from './expect.js'

// Values that the suites request: some that entries have, and some that none has.

/** An id that no entry has. */
export const UNKNOWN_ID = 'no-such-entry-4f1d'

/** Maximum number of filter values and ids to test; more would only take longer. */
export const IDS_TRIED = 20

/** A filter of the fields of an item, each with a value. */
export type FilterOf<Item> = { [Field in keyof Item]?: NonNullable<Item[Field]> }

const isKnown = (value: unknown) => value !== null && value !== undefined

/** Returns filters to test: every value that occurs, one that does not, and all values of one entry together. */
export function filtersIn<Item extends object>(
  entries: readonly Item[],
  fields: readonly (keyof Item & string)[],
): FilterOf<Item>[] {
  const found: object[] = []
  for (const field of fields) {
    const values = [...new Set(entries.map((entry) => entry[field]))].filter(isKnown)
    for (const value of values.slice(0, IDS_TRIED)) found.push({ [field]: value })
    if (field.endsWith('_id')) found.push({ [field]: UNKNOWN_ID })
  }
  const last = entries.at(-1)
  const known = fields.filter((field) => last && isKnown(last[field]))
  if (last) found.push(Object.fromEntries(known.map((field) => [field, last[field]])))
  return found
}

const APART_MS = 86_400_000
// A live inspector may compute a time again, and differ by that much.
const CLEAR_MS = 2_000

/** Filters by times: before all entries, behind all of them, and between some where none is near. */
export const timesIn = <Item extends object>(entries: readonly Item[], names: readonly string[] = []) =>
  names.flatMap((name) => {
    const known = entries.map((entry) => valueOfFilter(name, entry)).filter(isKnown)
    const times = known.map((time) => Date.parse(String(time))).sort((a, b) => a - b)
    const [first, last] = [times[0], times.at(-1)]
    if (first === undefined || last === undefined) return []
    const gap = times.findIndex((time, i) => i > 0 && time - (times[i - 1] as number) > 2 * CLEAR_MS)
    const between = gap < 0 ? [] : [(times[gap] as number) - CLEAR_MS]
    return [first - APART_MS, ...between, last + APART_MS].map(
      (time) => ({ [name]: new Date(time).toISOString() }) as FilterOf<Item>,
    )
  })

/**
 * Creates the inspector under test, with the same entries each time, or returns `undefined` if it is not implemented.
 */
export type MakeInspector<Inspector> = () => Awaitable<Inspector | undefined>

export type List<Item> = (page: PageQuery, ctx: InspectionContext) => Awaitable<Page<Item>>

// Because pages may be empty, a walk may take more pages than entries, but must end.
const PAGES_MAX = 10_000

/**
 * Returns all items of a list. @throws ContractBroken for pages that break the contract of `Page`, and for a walk that
 * does not end.
 */
export async function walk<Item>(list: List<Item>, limit: number, what: string): Promise<Item[]> {
  const items: Item[] = []
  const tokens = new Set<string>()
  let cursor: string | null = null
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = { limit, cursor }
    const answer = await orRefusal(() => list(query, CONTEXT), what, 'unavailable')
    if ('code' in answer) throw new ContractBroken(`${what} rejected a walk with ${answer.code}`)
    const page: Page<Item> = answer.value
    checkPage(page, limit, what)
    items.push(...page.items)
    if (!page.has_more) return items
    cursor = page.next_cursor as string
    check(!tokens.has(cursor), `${what} returned the same cursor twice in one walk`)
    tokens.add(cursor)
  }
  check(false, `${what} did not end within ${PAGES_MAX} pages`)
  return items
}

function checkPage(page: Page<unknown>, limit: number, what: string): void {
  check(Array.isArray(page?.items) && typeof page.has_more === 'boolean', `${what} did not return a page`)
  checkExamined(page, EXAMINED_MAX, what)
  check(page.items.length <= limit, `${what} returned ${page.items.length} items for a limit of ${limit}`)
  if (!page.has_more) return
  const token = page.next_cursor
  check(typeof token === 'string' && token.isWellFormed(), `${what} has more, so next_cursor must be well-formed`)
  check(
    utf8Length(token as string) <= TOKEN_BYTES,
    `${what} returned a cursor of ${utf8Length(token as string)} bytes, more than the maximum of ${TOKEN_BYTES}`,
  )
}

// A scan limit that a host may set.
const BOUND = 12

/** @throws ContractBroken if `examined` of a page is impossible or above the scan limit. */
function checkExamined({ examined, items }: Page<unknown>, bound: number, what: string): void {
  if (examined === undefined) return
  // One entry may give several items: a connection offers many actions.
  const isPossible = Number.isSafeInteger(examined) && examined >= (items.length > 0 ? 1 : 0)
  check(isPossible, `${what} returned examined: ${examined}`)
  check(examined <= bound, `${what} examined ${examined} entries, more than the scan limit of ${bound}`)
}

const shorten = (ids: readonly string[]) => (ids.length > 5 ? `${ids.slice(0, 5).join(', ')}, …` : ids.join(', '))

const LIMITS = [1, 2, 100]

/**
 * Walks with several limits, which must return the same entries. Returns those of the last walk, in its order.
 *
 * @param idOf Returns the unique id of an entry. Without it the order is compared, too.
 */
export async function walkAll<Item>(list: List<Item>, what: string, idOf?: (entry: Item) => string): Promise<Item[]> {
  let whole: Item[] | undefined
  for (const limit of LIMITS) {
    const items = await walk(list, limit, what)
    const promise = `${what} returns other entries with a limit of ${limit}`
    if (whole && idOf) checkEntries(items.map(steady), whole.map(steady), idOf, promise)
    else if (whole) checkEqual(items, whole, promise)
    whole = items
  }
  return whole ?? []
}

// Ages increase between two walks of a live inspector.
const VOLATILE = ['age_ms', 'staleness_ms', 'observed_at']

/** Returns a record without fields that change with time. */
function steady<T>(record: T): T {
  if (record === null || typeof record !== 'object') return record
  return Object.fromEntries(Object.entries(record).filter(([name]) => !VOLATILE.includes(name))) as T
}

/** One list of an inspector. */
interface ListContract<Inspector, Item extends object> {
  /** Name of the method, for errors. */
  name: string
  /** Returns the method with a filter, or `undefined` if the inspector does not implement it. */
  list(inspector: Inspector, filter: FilterOf<Item>): List<Item> | undefined
  item: Schema
  /** Reject fields that are not in the schema. */
  exact?: boolean
  /** The field that identifies an entry, or a function that returns its id. */
  id: (keyof Item & string) | ((entry: Item) => string)
  /** Whether pages of the list have an order. @default false */
  ordered?: true
  /** Fields that the list can be filtered by. */
  filters?: readonly (keyof Item & string)[]
  /** Filters of the list by a time. */
  times?: readonly string[]
  /** The method that returns one entry. */
  get?(inspector: Inspector, id: string, ctx: InspectionContext): Awaitable<Item | null>
}

/** An empty page, for a list that is not implemented. */
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

/** Returns the cases of one list. */
export function listCases<Inspector, Item extends object>(
  make: MakeInspector<Inspector>,
  contract: ListContract<Inspector, Item>,
): Promised[] {
  const { name, id, item, filters = [], get } = contract
  const idOf = (entry: Item) => (typeof id === 'function' ? id(entry) : String(entry[id]))
  const of =
    (work: (whole: List<Item>, inspector: Inspector) => Promise<void>): (() => Promise<void>) =>
    async () => {
      const inspector = await make()
      const whole = inspector && contract.list(inspector, {})
      if (!inspector || !whole) return notTested(`${name} is not implemented`)
      await work(whole, inspector)
    }
  const under = (inspector: Inspector, filter: FilterOf<Item>) => contract.list(inspector, filter) as List<Item>
  const cases: Promised[] = [
    {
      name: `${name} returns each entry once and ends, whatever the limit`,
      run: of(async (whole) => {
        const ids = (await walkAll(whole, name, idOf)).map(idOf)
        const twice = differenceOfIds(ids, ids)
        check(twice === undefined, `${name} shows entries ${twice}`)
      }),
    },
    {
      name: `${name} returns entries that match their schema`,
      run: of(async (whole) => {
        for (const entry of await walk(whole, 100, name))
          (contract.exact ? checkExact : checkSchema)(item, entry, `${name}: ${idOf(entry)}`)
      }),
    },
    {
      name: `${name} rejects a foreign cursor, or is not affected by it`,
      run: of(async (whole) => {
        const known = new Set((await walk(whole, 100, name)).map(idOf))
        for (const cursor of MALFORMED) {
          const answer = await orRefusal(
            () => whole({ limit: 2, cursor }, CONTEXT),
            `${name} for the cursor ${JSON.stringify(cursor)}`,
            'invalid_cursor',
          )
          if ('code' in answer) {
            checkEqual(answer.code, 'invalid_cursor', `${name} rejects a malformed cursor with`)
            continue
          }
          checkPage(answer.value, 2, name)
          for (const entry of answer.value.items)
            check(known.has(idOf(entry)), `${name} must not create an entry from a cursor`)
        }
      }),
    },
    {
      name: `${name} examines no more than the scan limit, and reports at least one entry if it returns any`,
      run: of(async (whole) => {
        for (const examined of [BOUND, EXAMINED_MAX])
          checkExamined(await whole({ limit: 5, cursor: null }, { ...CONTEXT, limits: { examined } }), examined, name)
        const bounded: InspectionContext = { ...CONTEXT, limits: { examined: EXAMINED_MAX }, scanBudget: BOUND }
        checkExamined(await whole({ limit: 5, cursor: null }, bounded), BOUND, name)
      }),
    },
    {
      name: `${name} settles when its signal is aborted`,
      run: of((whole) => checkEnds((ctx) => whole({ limit: 1, cursor: null }, ctx), name)),
    },
  ]
  if (contract.ordered)
    cases.push({
      name: `${name} returns the newest or the oldest entries first, by the order of the page`,
      run: of(async (whole, inspector) => {
        const oldest = await checkOrders(whole, name, idOf)
        for (const filter of filtersIn(oldest, filters).slice(0, IDS_TRIED))
          await checkOrders(under(inspector, filter), `${name} under ${comparableText(filter)}`, idOf)
      }),
    })
  if (filters.length > 0)
    cases.push({
      name: `${name} returns exactly the entries that match its filters`,
      run: of((whole, inspector) => checkFilters(whole, (filter) => under(inspector, filter), contract, idOf)),
    })
  if (get)
    cases.push({
      name: `${name}: a record by id equals the listed one, and an unknown id returns null`,
      run: of(async (whole, inspector) => {
        await checkRecords(await walk(whole, 100, name), (id, ctx) => get(inspector, id, ctx), name, idOf)
      }),
    })
  return cases
}

/** @throws ContractBroken unless each filter returns exactly the entries with its values, and NotTested for unknown fields. */
async function checkFilters<Item extends object>(
  whole: List<Item>,
  under: (filter: FilterOf<Item>) => List<Item>,
  { name, filters = [], times = [] }: Pick<ListContract<never, Item>, 'name' | 'filters' | 'times'>,
  idOf: (entry: Item) => string,
): Promise<void> {
  const entries = await walk(whole, 100, name)
  for (const filter of [...filtersIn(entries, filters), ...timesIn(entries, times)]) {
    const expected = entries.filter((entry) => matches(entry, filter))
    const found = await walk(under(filter), 2, name)
    const promise = `${name} under ${comparableText(filter)}`
    const wrong = found.find((entry) => !matches(entry, filter))
    const ids = differenceOfIds(found.map(idOf), expected.map(idOf))
    check(ids === undefined, `${promise}: ${ids}${wrong ? `; ${idOf(wrong)}: ${mismatchOf(wrong, filter)}` : ''}`)
    checkEntries(found.map(steady), expected.map(steady), idOf, promise)
  }
  const knownOf = (field: string) => entries.map((entry) => valueOfFilter(field, entry)).find(isKnown) ?? null
  const fields = [...filters, ...times.map((time) => fieldOfFilter(time, {}))]
  if (entries.length > 0) checkKnown(Object.fromEntries(fields.map((field) => [field, knownOf(field)])))
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
    check((await get(unknown, CONTEXT)) === null, `the record of ${unknown}, which does not exist, must be null`)
  await checkEnds((ctx) => get(UNKNOWN_ID, ctx), `${what} by id`)
}

/** Returns the entries, oldest first. @throws ContractBroken unless newest first is the reverse. */
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

/** The fields of `entry` that `filter` does not admit, with both values. */
function mismatchOf(entry: object, filter: object): string {
  const wrong = Object.entries(filter).filter(([name, wanted]) => !matches(entry, { [name]: wanted }))
  const shown = wrong.map(([name, wanted]) => {
    const field = fieldOfFilter(name, entry)
    return `${field}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(valueOfFilter(name, entry) ?? null)}`
  })
  return shown.join(', ')
}

// Contract of an index of users: all users, in order, with the numbers that a walk finds.

type Entry = { user_id: string }

// Maximum number of users per call of `observeUsers`.
const OBSERVED_USERS = 500

/** A whole id, the beginning of another one, and what no id begins with. */
const prefixesIn = (ids: readonly string[]): string[] => [
  ...ids.slice(0, 2),
  ...ids.slice(-2).map((id) => [...id].slice(0, 1).join('')),
  UNKNOWN_ID,
]

/** Returns the cases of a source's user index; they pass for a source without one. */
export function userCases(make: MakeInspector<UserIndex>, { list, fold }: UserEntries): Promised[] {
  const of = (work: (inspector: UserIndex, byUser: Map<string, Entry[]>) => Promise<void>) => async () => {
    const inspector = await make()
    if (!inspector) return notTested('the inspector is not implemented')
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
      name: 'listUserIds returns every user once, ordered by UTF-8 bytes, whatever the limit',
      run: of(async (inspector, byUser) => {
        if (!inspector.listUserIds) return notTested('listUserIds is not implemented')
        const expected = [...byUser.keys()].sort(compareIds)
        for (const limit of [1, 2, 100]) {
          const ids: string[] = []
          for (let after: string | null = null; ; after = ids.at(-1) as string) {
            const found: UserIds | null = await inspector.listUserIds({ after, limit }, CONTEXT)
            if (found === null) return notTested('listUserIds has no index')
            check(found.length <= limit, `listUserIds returned ${found.length} users for a limit of ${limit}`)
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
      name: 'observeUsers returns for each user what a walk over its entries returns',
      run: of(async (inspector, byUser) => {
        if (!inspector.observeUsers) return notTested('observeUsers is not implemented')
        const ids = [...byUser.keys()].slice(0, OBSERVED_USERS - 1)
        const observed = await inspector.observeUsers([...ids, UNKNOWN_ID], CONTEXT)
        if (observed === null) return notTested('observeUsers has no index')
        const parts = new Map(observed.map((part) => [part.user_id, part]))
        check(!parts.has(UNKNOWN_ID), 'observeUsers must not return a user that does not exist')
        for (const userId of ids) {
          const part = parts.get(userId)
          check(part !== undefined, `observeUsers must return ${userId}, which listUserIds returns`)
          if (part && !part.truncated)
            // A registry may remember the last heartbeat longer than its connection.
            for (const [field, reported] of Object.entries({
              ...foldAll(fold, byUser.get(userId) ?? []),
              last_seen_at: null,
            }))
              if (reported !== null)
                checkEqual(plain(part[field as keyof UserPart]), plain(reported), `observeUsers: ${field} of ${userId}`)
        }
        await checkEnds((ctx) => inspector.observeUsers?.(ids, ctx), 'observeUsers')
      }),
    },
  ]
}

/** Sorts a list of names and removes zeros from a map; returns anything else unchanged. */
function plain(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Symbol.iterator in value) return [...(value as Iterable<string>)].sort(compareIds)
  return Object.fromEntries(Object.entries(value).filter(([, count]) => count !== 0))
}
