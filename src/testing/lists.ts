/** What every list of every inspector promises: walks that end, limits, filters, tokens, records by id. */
import { utf8Length } from '../contract/ids.js'
import { EXAMINED_MAX, TOKEN_BYTES } from '../contract/limits.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'
import {
  ASK,
  ContractBroken,
  check,
  checkEnds,
  checkEntries,
  checkEqual,
  checkExact,
  checkSchema,
  differenceOfIds,
  notTested,
  orRefusal,
  type Promised,
  type Schema,
  textOf,
} from './expect.js'
import { filtersIn, IDS_TRIED, NOBODY } from './filters.js'

/** Makes the inspector under test, with the same entries each time; nothing where it is absent. */
export type MakeInspector<Inspector> = () => Awaitable<Inspector | undefined>

type List<Item> = (page: PageQuery, ask: Ask) => Awaitable<Page<Item>>

// With empty pages a walk may take more pages than it has entries, but not without end.
const PAGES_MAX = 10_000

/** All items of a list. @throws ContractBroken for pages that break a promise of `Page`, and for a walk without end. */
export async function walk<Item>(list: List<Item>, limit: number, what: string): Promise<Item[]> {
  const items: Item[] = []
  const tokens = new Set<string>()
  let cursor: string | null = null
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = { limit, cursor }
    const answer = await orRefusal(() => list(query, ASK), what, 'unavailable')
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
  check(Number.isSafeInteger(examined) && examined >= items.length, `${what} says that it examined ${examined} entries`)
  check(examined <= bound, `${what} examined ${examined} entries where ${bound} were allowed`)
}

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
  /** Fields that the list can be filtered by. */
  filters?: readonly (keyof Item & string)[]
  /** The method that finds one entry. */
  get?(inspector: Inspector, id: string, ask: Ask): Awaitable<Item | null>
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
  const { name, id, item, filters = [], get } = contract
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
            () => whole({ limit: 2, cursor }, ASK),
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
          checkExamined(await whole({ limit: 5, cursor: null }, { ...ASK, limits: { examined } }), examined, name)
        const left: Ask = { ...ASK, limits: { examined: EXAMINED_MAX }, remaining: BOUND }
        checkExamined(await whole({ limit: 5, cursor: null }, left), BOUND, name)
      }),
    },
    {
      name: `${name} ends when its signal is aborted`,
      run: of((whole) => checkEnds((ask) => whole({ limit: 1, cursor: null }, ask), name)),
    },
  ]
  if (filters.length > 0)
    cases.push({
      name: `${name} answers exactly the entries that match its filters`,
      run: of(async (whole, inspector) => {
        const entries = await walk(whole, 100, name)
        for (const filter of filtersIn(entries, filters)) {
          const expected = entries.filter((entry) => matches(entry, filter))
          const found = await walk(under(inspector, filter), 2, name)
          checkEntries(found.map(steady), expected.map(steady), idOf, `${name} under ${textOf(filter)}`)
        }
      }),
    })
  if (get)
    cases.push({
      name: `${name}: an entry asked for by its id is the one that is listed, and an unknown one is null`,
      run: of(async (whole, inspector) => {
        const entries = await walk(whole, 100, name)
        for (const entry of entries.slice(0, IDS_TRIED)) {
          const found = await get(inspector, idOf(entry), ASK)
          checkEqual(steady(found), steady(entry), `the entry ${idOf(entry)} by its id`)
        }
        const known = new Set(entries.map((entry) => idOf(entry)))
        for (const unknown of [NOBODY, '__proto__', 'constructor'].filter((candidate) => !known.has(candidate)))
          check(
            (await get(inspector, unknown, ASK)) === null,
            `the answer for ${unknown}, who does not exist, must be null`,
          )
        await checkEnds((ask) => get(inspector, NOBODY, ask), `${name} by id`)
      }),
    })
  return cases
}

const matches = (entry: object, filter: object) =>
  Object.entries(filter).every(([name, value]) => entry[name as keyof object] === value)
