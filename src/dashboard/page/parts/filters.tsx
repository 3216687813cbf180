/** The filter bar of a list: presets, the filters of the address, and one field to add another. A link is the view. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ClientType } from '../../../internal/contract/connections.js'
import type { Ownership } from '../../../internal/contract/contexts.js'
import { type Address, hrefOf, type Query } from '../address.js'
import { instantIn } from '../instants.js'
import { spacedName, timeOf } from '../words.js'
import { Text } from './text.js'

/** A filter of a route: of any text, or one of its words. */
export interface Filter {
  readonly name: string
  readonly words?: readonly string[]
  /** The route answers nothing without it. */
  readonly isRequired?: true
}

/** Filters under a name, for what is looked for most often. */
export type Preset = readonly [title: string, query: Query]

export const text = (name: string): Filter => ({ name })
export const choice = (name: string, words: readonly string[]): Filter => ({ name, words })
export const flag = (name: string): Filter => choice(name, ['true', 'false'])

/** The orders of a list; with none chosen it has its own. */
export const ORDER: Filter = choice('order', ['newest', 'oldest'])

/** The words of filters that several lists have. */
export const CLIENT_TYPES: ClientType[] = ['browser', 'console', 'mobile', 'web']
export const OWNERSHIPS: Ownership[] = ['user-owned', 'worker']

const isPaging = (name: string) => name === 'cursor' || name === 'limit'

/** The address with one filter set, or without it. It starts at the first page: a cursor is valid for one filter only. */
function withFilter({ path, query }: Address, name: string, value: string | null): string {
  const next = new URLSearchParams(query)
  next.delete('cursor')
  if (value === null || value === '') next.delete(name)
  else next.set(name, value)
  return hrefOf(path, next)
}

/** Suggestions at most. */
const SUGGESTED = 50

/** Values of a field in the rows that are shown, the most common first, each with the number of its rows. */
export function valuesIn(rows: readonly object[], name: string): [value: string, count: number][] {
  const counts = new Map<string, number>()
  for (const row of rows) {
    const { admission, terminal, ...own } = row as Record<string, unknown>
    const value = ({ ...(admission as object), ...(terminal as object), ...own } as Record<string, unknown>)[name]
    if (typeof value === 'string') counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, SUGGESTED)
}

const isTime = (name: string) => name === 'from' || name === 'to'

const hintOf = (name: string) =>
  isTime(name)
    ? '14:03 or -5m'
    : name.endsWith('prefix')
      ? 'begins with'
      : name.endsWith('_ms')
        ? 'at least, in ms'
        : 'exact'

interface AddProps {
  filters: readonly Filter[]
  address: Address
  rows: readonly object[]
}

/** One filter to set: its field, and its value with suggestions. */
function Add({ filters, address, rows }: AddProps): JSX.Element {
  const missing = filters.find(({ name, isRequired }) => isRequired && !address.query.get(name))
  const [chosen, setChosen] = useState(missing?.name ?? filters[0]?.name ?? '')
  const [value, setValue] = useState('')
  const { words } = filters.find(({ name }) => name === chosen) ?? {}
  const set = (text: string) => {
    // Reasons are shown with spaces.
    const said = chosen.endsWith('reason') ? text.trim().replaceAll(' ', '_') : text.trim()
    const given = isTime(chosen) ? String(instantIn(said) || said) : said
    setValue('')
    if (given) location.hash = withFilter(address, chosen, given)
  }
  const submit = (event: Event) => {
    event.preventDefault()
    set(value)
  }
  return (
    <form class="add" onSubmit={submit}>
      <select
        aria-label="filter"
        value={chosen}
        onChange={(event) => {
          setChosen(event.currentTarget.value)
          setValue('')
        }}
      >
        {filters.map(({ name }) => (
          <option key={name} value={name}>
            {spacedName(name)}
          </option>
        ))}
      </select>
      {words ? (
        <select aria-label={spacedName(chosen)} value="" onChange={(event) => set(event.currentTarget.value)}>
          <option value="">choose</option>
          {words.map((word) => (
            <option key={word} value={word}>
              {spacedName(word)}
            </option>
          ))}
        </select>
      ) : (
        <>
          <input
            type="search"
            aria-label={spacedName(chosen)}
            list="values"
            autocomplete="off"
            spellcheck={false}
            placeholder={hintOf(chosen)}
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
          <datalist id="values">
            {valuesIn(rows, chosen).map(([one]) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <button type="submit">Add</button>
        </>
      )}
    </form>
  )
}

/** Values that are counted in the filter bar. */
const COUNTED = 3

interface FiltersProps extends AddProps {
  presets?: readonly Preset[] | undefined
  /** The field whose values are counted in the rows under a filter. */
  countBy?: string | undefined
}

export function Filters({ filters, presets = [], address, rows, countBy }: FiltersProps): JSX.Element | null {
  const { path, query } = address
  if (filters.length === 0) return null
  const given = [...query].filter(([name]) => !isPaging(name))
  const isMissing = filters.some(({ name, isRequired }) => isRequired && !query.get(name))
  const isChosen = (preset: Query) =>
    given.length === Object.keys(preset).length && given.every(([name, value]) => preset[name] === value)
  return (
    <div class="bar-of-filters">
      {presets.map(([title, preset]) => (
        <a key={title} class="chip" href={hrefOf(path, preset)} aria-current={isChosen(preset) ? 'true' : undefined}>
          {title}
        </a>
      ))}
      {given.map(([name, value]) => (
        <a key={name} class="chip on" data-filter={name} href={withFilter(address, name, null)}>
          <span class="hidden">remove</span> <span class="dim">{spacedName(name)}</span>{' '}
          <Text value={isTime(name) ? timeOf(+value || value) : spacedName(value)} /> <span aria-hidden="true">×</span>
        </a>
      ))}
      <details class="filters" open={isMissing}>
        <summary class="chip">+ filter</summary>
        <Add filters={filters} address={address} rows={rows} />
      </details>
      {given.length > 0 && (
        <>
          <a href={hrefOf(path)}>clear</a>
          {countBy &&
            !query.has(countBy) &&
            valuesIn(rows, countBy)
              .slice(0, COUNTED)
              .map(([value, count]) => (
                <a key={value} class="chip" title="in the rows below" href={withFilter(address, countBy, value)}>
                  {count} × <Text value={value} />
                </a>
              ))}
        </>
      )}
    </div>
  )
}
