/** A list of the router as a page: its filters, how far it can be believed, its rows, and the way on. */
import type { JSX } from 'preact'
import type { Completeness } from '../../../contract/completeness.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { spacedName } from '../words.js'
import { Card } from './card.js'
import { type Filter, Filters } from './filters.js'
import { ProblemNote, State } from './state.js'
import { headOf, Table, type TableView } from './table.js'

/** A page of a list, with whatever the route says beside. */
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
  /** It is no list that can be watched. */
  readonly isAsked?: true
}

/** What a list says of some of its records, on the page of something else. */
export function Excerpt<T>({ view, query }: { view: ListView<T>; query: Record<string, string> }): JSX.Element {
  const { path, title, columns } = view
  const look = { ...view, columns: columns.filter((column) => !(headOf(column) in query)) }
  return (
    <Card
      title={title}
      href={hrefOf(path, query)}
      answer={useAnswer<Listed<T>>(pathWithQuery(path, { ...query, limit: '20' }), true)}
    >
      {({ items }) => <Table label={title} rows={items} look={look} />}
    </Card>
  )
}

/** Where the walk goes on, and where it began. */
export function Pager({ address: { path, query }, page }: { address: Address; page: Listed<unknown> | null }) {
  const turn = (cursor: string | null) => hrefOf(path, { ...Object.fromEntries(query), cursor })
  return (
    <nav class="pager" aria-label="Pages">
      {query.has('cursor') && <a href={turn(null)}>first page</a>}
      {page?.has_more && <a href={turn(page.next_cursor)}>next page</a>}
    </nav>
  )
}

interface HeadProps {
  title: string
  about: string
  filters: readonly Filter[]
  address: Address
  /** What the line below says; `null` while a filter is missing that the route needs. */
  answer: Parameters<typeof State>[0]['answer'] | null
}

/** What stands above every list. */
export const PageHead = ({ title, about, filters, address, answer }: HeadProps): JSX.Element => (
  <>
    <header class="page">
      <h1>{title}</h1>
      <p>{about}</p>
      <Filters filters={filters} address={address} />
      {answer ? <State answer={answer} /> : <p class="empty">Say whose: {needOf(filters).join(' and ')}.</p>}
    </header>
    {answer?.problem && <ProblemNote problem={answer.problem} />}
  </>
)

const needOf = (filters: readonly Filter[]) =>
  filters.filter(({ isNeeded }) => isNeeded).map(({ name }) => spacedName(name))

/** Whether the address has what the route needs. */
export const hasRequiredFilters = (filters: readonly Filter[], { query }: Address): boolean =>
  filters.every(({ name, isNeeded }) => !isNeeded || query.get(name))

export function ListPage<T>({ view, address }: { view: ListView<T>; address: Address }): JSX.Element {
  const { title, filters, isAsked } = view
  const isReady = hasRequiredFilters(filters, address)
  const answer = useAnswer<Listed<T>>(isReady ? pathWithQuery(address.path, address.query) : null, !isAsked)
  const { value, isOld } = answer
  return (
    <>
      <PageHead {...view} address={address} answer={isReady ? answer : null} />
      {value && (
        <div class={isOld ? 'old' : ''}>
          <Table label={title} rows={value.items} look={view} />
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
