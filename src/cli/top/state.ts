/** What `top` knows and shows, and how keys and answers change it. Nothing here draws or asks. */
import type { FetchResult } from '../reader/reader.js'
import { cellOf, flatten } from '../text/table.js'
import { TABLES, type TopTable } from './tables.js'

/** What was last answered to one route, and what has gone wrong since. */
export interface Known {
  readonly value: unknown
  /** Epoch ms of this machine's clock; `null` for never. */
  readonly at: number | null
  readonly problem: string | null
}

export interface TopState {
  known: ReadonlyMap<string, Known>
  table: number
  /** The field that rows are sorted by; `null`: in the router's order. */
  sort: string | null
  isDescending: boolean
  filter: string
  /** Whether keys are letters of the filter. */
  isTyping: boolean
  selected: number
  /** The record that is shown alone, as last received, and whether it has left its list since. */
  open: { readonly row: object; readonly isGone: boolean } | null
  /** Lines of the open record that are above the screen. */
  scrolled: number
  isHelping: boolean
  isPaused: boolean
}

export const initialState = (): TopState => ({
  known: new Map(),
  table: 0,
  sort: null,
  isDescending: false,
  filter: '',
  isTyping: false,
  selected: 0,
  open: null,
  scrolled: 0,
  isHelping: false,
  isPaused: false,
})

const UNKNOWN: Known = { value: null, at: null, problem: null }

export const lastKnown = ({ known }: TopState, route: string): Known => known.get(route) ?? UNKNOWN

/** Stores a result. If the request failed, the last value stays, with its time. */
export function withResult(state: TopState, route: string, asked: FetchResult, now: number): TopState {
  const known = new Map(state.known)
  const before = lastKnown(state, route)
  known.set(
    route,
    asked.problem === undefined
      ? { value: asked.value, at: now, problem: null }
      : { ...before, problem: asked.problem },
  )
  const next = { ...state, known }
  const { route: shown } = tableOfState(state)
  return route === shown && asked.problem === undefined ? { ...next, open: openOf(next) } : next
}

export const tableOfState = ({ table }: TopState) => TABLES[table] as (typeof TABLES)[number]

const itemsOf = (state: TopState): readonly object[] =>
  (lastKnown(state, tableOfState(state).route).value as { items?: object[] } | null)?.items ?? []

/** The open record as the list has it now. */
function openOf(state: TopState): TopState['open'] {
  const { open } = state
  if (open === null) return null
  const idOf = (row: object) => {
    const flat = flatten(row)
    return JSON.stringify(tableOfState(state).id.map((field) => flat.get(field)))
  }
  const wanted = idOf(open.row)
  const row = itemsOf(state).find((item) => idOf(item) === wanted)
  return row ? { row, isGone: false } : { ...open, isGone: true }
}

const compare = (a: unknown, b: unknown): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : cellOf(a) < cellOf(b) ? -1 : Number(cellOf(a) > cellOf(b))

/** What a row says, as the router wrote it and as it is shown. */
const textsOf = (row: object, { fields }: TopTable): string[] =>
  [...flatten(row)].flatMap(([name, value]) => {
    const text = cellOf(value).toLowerCase()
    const prefix = fields.find(({ instead }) => instead?.[0] === name)?.instead?.[1] ?? ''
    return [text, prefix + text.replaceAll('_', ' ')]
  })

/** The rows of the current table, as they are filtered and sorted. */
export function rowsOf(state: TopState): object[] {
  const items = itemsOf(state).slice()
  // A shortened id is found by both of its ends.
  const table = tableOfState(state)
  const wanted = state.filter.toLowerCase().split('…')
  const found =
    state.filter === ''
      ? items
      : items.filter((row) => textsOf(row, table).some((text) => wanted.every((part) => text.includes(part))))
  const { sort, isDescending } = state
  if (sort === null) return found
  const sorted = found.map((row) => ({ row, by: flatten(row).get(sort) })).sort((a, b) => compare(a.by, b.by))
  if (isDescending) sorted.reverse()
  return sorted.map(({ row }) => row)
}

/** A key as `node:readline` names it. */
export interface Key {
  name?: string | undefined
  sequence?: string | undefined
  ctrl?: boolean | undefined
}

/** No record has more lines. */
const LINES_MAX = 10_000

const isPrintable = (text: string | undefined): text is string =>
  text !== undefined && !/[\p{Cc}\p{Cf}\p{Cs}]/u.test(text)

function type(state: TopState, { name, sequence }: Key): TopState {
  if (name === 'escape') return { ...state, isTyping: false, filter: '' }
  if (name === 'return' || name === 'enter') return { ...state, isTyping: false }
  if (name === 'backspace') return { ...state, filter: state.filter.slice(0, -1), selected: 0 }
  return isPrintable(sequence) ? { ...state, filter: state.filter + sequence, selected: 0 } : state
}

const turnTo = (state: TopState, table: number): TopState => ({
  ...state,
  table: (table + TABLES.length) % TABLES.length,
  sort: null,
  isDescending: false,
  filter: '',
  selected: 0,
  open: null,
})

/** The next field to sort by; behind the last the router's own order. */
function nextSort(state: TopState): string | null {
  const paths = tableOfState(state).fields.map(({ path }) => path)
  return paths[state.sort === null ? 0 : paths.indexOf(state.sort) + 1] ?? null
}

/** @returns the state after `key`; `null` where it ends the program. */
export function handleKey(state: TopState, key: Key): TopState | null {
  const { name, sequence = '', ctrl } = key
  if (ctrl) return name === 'c' || name === 'd' ? null : state
  if (state.isTyping) return type(state, key)
  const rows = rowsOf(state)
  const chosen = rows[Math.min(state.selected, rows.length - 1)]
  const move = (by: number): TopState =>
    state.open ? { ...state, scrolled: Math.max(0, Math.min(LINES_MAX, state.scrolled + by)) } : step(by)
  const step = (by: number): TopState => ({
    ...state,
    selected: Math.max(0, Math.min(rows.length - 1, state.selected + by)),
  })
  if (/^[1-9]$/.test(sequence)) return Number(sequence) <= TABLES.length ? turnTo(state, Number(sequence) - 1) : state
  switch (name ?? sequence) {
    case 'q':
      return null
    case 'escape':
      return state.isHelping || state.open
        ? { ...state, isHelping: false, open: null }
        : { ...state, filter: '', selected: 0 }
    case 'tab':
    case 'right':
      return turnTo(state, state.table + 1)
    case 'left':
      return turnTo(state, state.table - 1)
    case 'down':
    case 'j':
      return move(1)
    case 'up':
    case 'k':
      return move(-1)
    case 'pagedown':
      return move(20)
    case 'pageup':
      return move(-20)
    case 'home':
      return move(Number.NEGATIVE_INFINITY)
    case 'end':
      return move(Number.POSITIVE_INFINITY)
    case 'return':
    case 'enter':
      return { ...state, open: state.open || !chosen ? null : { row: chosen, isGone: false }, scrolled: 0 }
    case 's':
      return { ...state, sort: nextSort(state), selected: 0 }
    case 'r':
      return { ...state, isDescending: !state.isDescending }
    case 'p':
      return { ...state, isPaused: !state.isPaused }
    case '/':
      return { ...state, isTyping: true, open: null }
    case '?':
      return { ...state, isHelping: !state.isHelping }
    default:
      return state
  }
}
