/** A list of the router as a page: its filters, how far it can be believed, its rows, and the way on. */
import type { ComponentChildren, JSX } from 'preact'
import type { Completeness, SourceName } from '../../../contract/completeness.js'
import { type Address, hrefOf, question } from '../address.js'
import { useAnswer } from '../hooks.js'
import { type Filter, Filters } from './filters.js'
import { State, Trouble } from './state.js'
import { type Column, Table } from './table.js'

/** A page of a list, with whatever the route says beside. */
export interface Listed<T> {
  items: readonly T[]
  has_more: boolean
  next_cursor: string | null
  omitted?: number
  completeness?: Completeness
}

/** One list of the router, and how it is shown. */
export interface ListView<T> {
  path: string
  title: string
  /** What the page is for, in one sentence. */
  about: string
  source?: SourceName
  filters: readonly Filter[]
  columns: readonly Column<T>[]
  keyOf(row: T): string
  markOf?(row: T): string
  /** It is no list that can be watched. */
  isAsked?: true
}

/** What a list says of some of its records, on the page of something else. */
export function Excerpt<T>({ view, query }: { view: ListView<T>; query: Record<string, string> }): JSX.Element {
  const { path, title, columns, keyOf, markOf } = view
  const answer = useAnswer<Listed<T>>(question(path, { ...query, limit: '20' }), true)
  const shown = columns.filter(({ head }) => !(head in query))
  return (
    <section class="card">
      <h2>
        <a href={hrefOf(path, query)}>{title}</a>
      </h2>
      <State answer={answer} />
      {answer.problem && <Trouble problem={answer.problem} />}
      {answer.value && (
        <div class={answer.isOld ? 'old' : ''}>
          <Table label={title} rows={answer.value.items} columns={shown} keyOf={keyOf} {...(markOf && { markOf })} />
        </div>
      )}
    </section>
  )
}

interface ListPageProps<T> {
  view: ListView<T>
  address: Address
  /** What the page says beside its rows. */
  children?: (page: Listed<T>) => ComponentChildren
}

export function ListPage<T>({ view, address, children }: ListPageProps<T>): JSX.Element {
  const { path, title, about, filters, columns, keyOf, markOf } = view
  const { query } = address
  const missing = filters.filter(({ name, isNeeded }) => isNeeded && !query.get(name))
  const answer = useAnswer<Listed<T>>(missing.length > 0 ? null : question(address.path, query), !view.isAsked)
  const { value, problem, isOld } = answer
  const turn = (cursor: string | null) => {
    const next = new URLSearchParams(query)
    if (cursor === null) next.delete('cursor')
    else next.set('cursor', cursor)
    return hrefOf(path, next)
  }
  return (
    <>
      <header class="page">
        <h1>{title}</h1>
        <p>{about}</p>
        <Filters filters={filters} address={address} />
        {missing.length === 0 && <State answer={answer} />}
      </header>
      {missing.length > 0 && <p class="empty">Say which {missing.map(({ name }) => name).join(' and ')}.</p>}
      {problem && <Trouble problem={problem} />}
      {value && (
        <div class={isOld ? 'old' : ''}>
          {children?.(value)}
          <Table label={title} rows={value.items} columns={columns} keyOf={keyOf} {...(markOf && { markOf })} />
        </div>
      )}
      <nav class="pager" aria-label="Pages">
        {query.has('cursor') && <a href={turn(null)}>first page</a>}
        {value?.has_more && <a href={turn(value.next_cursor)}>next page</a>}
      </nav>
    </>
  )
}
