/** A list of the router as a page: its filters, how far it can be believed, its rows, and the way on. */
import type { JSX } from 'preact'
import type { Completeness } from '../../../contract/completeness.js'
import { type Address, hrefOf, question } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Card } from './card.js'
import { type Filter, Filters } from './filters.js'
import { State, Trouble } from './state.js'
import { headOf, type Look, Table } from './table.js'

/** A page of a list, with whatever the route says beside. */
export interface Listed<T> {
  items: readonly T[]
  has_more: boolean
  next_cursor: string | null
  omitted?: number
  completeness?: Completeness
}

/** One list of the router, and how it is shown. */
export interface ListView<T> extends Look<T> {
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
      title={<a href={hrefOf(path, query)}>{title}</a>}
      answer={useAnswer<Listed<T>>(question(path, { ...query, limit: '20' }), true)}
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

export function ListPage<T>({ view, address }: { view: ListView<T>; address: Address }): JSX.Element {
  const { title, about, filters } = view
  const { path, query } = address
  const missing = filters.filter(({ name, isNeeded }) => isNeeded && !query.get(name))
  const answer = useAnswer<Listed<T>>(missing.length > 0 ? null : question(path, query), !view.isAsked)
  const { value, problem, isOld } = answer
  return (
    <>
      <header class="page">
        <h1>{title}</h1>
        <p>{about}</p>
        <Filters filters={filters} address={address} />
        {missing.length > 0 ? (
          <p class="empty">Say which {missing.map(({ name }) => name).join(' and ')}.</p>
        ) : (
          <State answer={answer} />
        )}
      </header>
      {problem && <Trouble problem={problem} />}
      {value && (
        <div class={isOld ? 'old' : ''}>
          <Table label={title} rows={value.items} look={view} />
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
