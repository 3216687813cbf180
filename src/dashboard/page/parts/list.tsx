/** A list of the router as a page: filters, completeness, rows, paging. */
import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Completeness } from '../../../internal/contract/capabilities.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { isFollowing, setFollowing } from '../preferences.js'
import { countOf, spacedName } from '../words.js'
import { Card } from './card.js'
import { type Filter, Filters, type Preset } from './filters.js'
import { ProblemNote, State } from './state.js'
import { headOf, Table, type TableView } from './table.js'
import { Text } from './text.js'

/** A page of a list, with the other fields of the route. */
export interface Listed<T> {
  items: readonly T[]
  has_more: boolean
  next_cursor: string | null
  omitted?: number
  completeness?: Completeness
}

/** One list of the router, and how it is shown. */
export interface ListView<T> extends TableView<T> {
  readonly path: string
  readonly title: string
  /** What the page is for, in a sentence. */
  readonly about: string
  readonly filters: readonly Filter[]
  readonly presets?: readonly Preset[]
  /** The field whose values are counted in the filter bar. */
  readonly countBy?: string
  /** The route that counts what the same filters let through. */
  readonly countedBy?: string
  /** How a whole list is ordered, if not as it is answered. */
  order?(a: T, b: T): number
}

/** Records that an excerpt shows. */
export const EXCERPT = '20'

interface ExcerptProps<T> {
  view: ListView<T>
  query: Record<string, string>
}

/** The request behind an excerpt: the same for everything on a page that shows these records. */
export const excerptPath = ({ path }: { path: string }, query: Record<string, string>): string =>
  pathWithQuery(path, { ...query, limit: EXCERPT })

/** Some records of a list, on the page of another record; a single line where there are none. */
export function Excerpt<T>({ view, query }: ExcerptProps<T>): JSX.Element {
  const { path, title, columns } = view
  // Made once: rows are drawn again where their columns are others.
  const look = useMemo(() => ({ ...view, columns: columns.filter((column) => !(headOf(column) in query)) }), [view])
  const answer = useAnswer<Listed<T>>(excerptPath(view, query))
  const isNone = answer.value?.items.length === 0 && !answer.value.has_more && !answer.isOld
  return (
    <Card title={title} href={hrefOf(path, query)} answer={answer} {...(isNone && { class: 'brief' })}>
      {({ items }) => (isNone ? null : <Table label={title} rows={items} look={look} />)}
    </Card>
  )
}

const SIZES = ['20', '100', '500']

/** The page from which each later one was reached: cursors lead forward only. */
const before = new Map<string, string>()

/** Links to the other pages, and the number of rows per page. */
export function Pager({ address: { path, query }, page }: { address: Address; page: Listed<unknown> | null }) {
  const turn = (cursor: string | null) => hrefOf(path, { ...Object.fromEntries(query), cursor })
  const next = turn(page?.next_cursor ?? null)
  const here = turn(query.get('cursor'))
  if (!query.has('cursor')) before.clear()
  const size = (limit: string) => hrefOf(path, { ...Object.fromEntries(query), cursor: null, limit })
  return (
    <nav class="pager" aria-label="Pages">
      {query.has('cursor') && <a href={turn(null)}>first page</a>}
      {before.has(here) && <a href={before.get(here)}>previous page</a>}
      {page?.has_more && (
        <a href={next} onClick={() => before.set(next, here)}>
          next page
        </a>
      )}
      {(page?.has_more || query.has('limit')) && (
        <span class="dim">
          rows a page{' '}
          {SIZES.map((limit) => [
            <a key={limit} href={size(limit)} aria-current={query.get('limit') === limit ? 'true' : undefined}>
              {limit}
            </a>,
            ' ',
          ])}
        </span>
      )}
    </nav>
  )
}

interface HeadProps {
  title: string
  about: string
  filters: readonly Filter[]
  presets?: readonly Preset[] | undefined
  countBy?: string | undefined
  /** The records that are shown, whose values are suggested. */
  rows?: readonly object[]
  address: Address
  /** What the line below says; `null` while a filter is missing that the route needs. */
  answer: Parameters<typeof State>[0]['answer'] | null
  total?: number | null | undefined
  children?: ComponentChildren
}

/** The head of every list: the filter bar, and how much of it is shown, next to the rows that wait. */
export const PageHead = ({ rows = [], children, ...head }: HeadProps): JSX.Element => {
  const { title, about, filters, presets, countBy, address, answer, total } = head
  return (
    <>
      <header class="page">
        <h1>{title}</h1>
        <p class="dim">{about}</p>
        <div class="bar-of-list">
          <Filters filters={filters} presets={presets} countBy={countBy} address={address} rows={rows} />
          {answer && (
            <div class="count">
              <State answer={answer} total={total} />
              {children}
            </div>
          )}
        </div>
        {!answer && (
          <p class="empty">
            Choose a{' '}
            {needOf(filters)
              .map((name) => name.replace(/ id$/, ''))
              .join(' and a ')}{' '}
            first.
          </p>
        )}
      </header>
      {answer?.problem && answer.value === null && <ProblemNote problem={answer.problem} />}
    </>
  )
}

const needOf = (filters: readonly Filter[]) =>
  filters.filter(({ isRequired }) => isRequired).map(({ name }) => spacedName(name))

/** Says which filters let nothing through, and that they are exact. */
function noneOf(title: string, { query }: Address): string {
  const given = [...query].filter(([name]) => !/^(cursor|limit|order)$/.test(name))
  const none = title.toLowerCase()
  if (given.length === 0) return query.has('cursor') ? `No more ${none}.` : `No ${none}.`
  const isExact = given.some(([name]) => /_id$|^(action|owner|stream)$/.test(name))
  const filters = given.map(([name, value]) => `${name} = ${value}`).join(' and ')
  return `No ${none} with ${filters}${isExact ? ' (exact match)' : ''}.`
}

interface Held<T> {
  shown: readonly T[]
  /** Rows above one that is shown, which would move it. */
  count: number
  take(): void
}

/** The rows that were there when the list was opened, as they are now: new ones wait until they are asked for, or follow below. */
function useHeld<T>(path: string | null, items: readonly T[], keyOf: (row: T) => string): Held<T> {
  const redraw = useState({})[1]
  const taken = useMemo(() => new Set<string>(), [path])
  // Another key, another instant of a recording: the list starts again.
  if (items.length === 0) taken.clear()
  const isShown = (row: T) => taken.has(keyOf(row))
  const last = items.findLastIndex(isShown)
  for (const row of isFollowing() ? items : items.slice(last + 1)) taken.add(keyOf(row))
  const shown = items.filter(isShown)
  const take = () => {
    taken.clear()
    redraw({})
  }
  return { shown, count: items.length - shown.length, take }
}

/** How many rows wait, and the choice not to let them wait. They share the line above the table, so that nothing moves. */
export function News({ count, take }: { count: number; take: () => void }): JSX.Element {
  const toggle = () => {
    setFollowing(!isFollowing())
    take()
  }
  return (
    <span class="news">
      {count > 0 && (
        <button type="button" id="news" onClick={take}>
          show {countOf(count)} new
        </button>
      )}
      <button type="button" aria-pressed={isFollowing()} title="Show new rows as they come" onClick={toggle}>
        follow
      </button>
    </span>
  )
}

export function ListPage<T>({ view, address }: { view: ListView<T>; address: Address }): JSX.Element {
  const { title, filters, countedBy } = view
  const { path, query } = address
  const isReady = filters.every(({ name, isRequired }) => !isRequired || query.get(name))
  const asked = isReady ? pathWithQuery(path, query) : null
  const answer = useAnswer<Listed<T>>(asked)
  const { value, isOld } = answer
  const { items = [], has_more } = value ?? {}
  const isWhole = view.order && !has_more && !query.has('cursor')
  const { shown, ...held } = useHeld(asked, isWhole ? items.toSorted(view.order) : items, view.keyOf)
  const counted = new URLSearchParams([...query].filter(([name]) => !/^(cursor|limit|order)$/.test(name)))
  const count = useAnswer<{ total: number }>(countedBy && value?.has_more ? pathWithQuery(countedBy, counted) : null)
  // On a later page the total is not what follows.
  const total = query.has('cursor') || count.isOld ? null : count.value?.total
  return (
    <>
      <PageHead
        {...view}
        rows={shown as readonly object[]}
        address={address}
        answer={isReady ? answer : null}
        total={total}
      >
        {isReady && <News {...held} />}
      </PageHead>
      {value && (
        <div class={isOld ? 'place old' : 'place'}>
          <Table label={title} rows={shown} look={view} isTall empty={<Text value={noneOf(title, address)} />} />
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
