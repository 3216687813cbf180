/** A real table of records; a row is drawn again only when its record is another one. */
import { Component, type ComponentChildren, type JSX } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { zoneName } from '../preferences.js'
import { labelOf } from '../words.js'
import { Field } from './field.js'
import { Hint } from './value.js'

/** A field by its name, or what is made of several. With a `width` (CSS), it does not move others when what it says changes. */
export type Column<T> =
  | (keyof T & string)
  | { readonly head: string; readonly width?: string; cell(row: T): ComponentChildren }

export const headOf = <T,>(column: Column<T>) => (typeof column === 'string' ? column : column.head)

/** How a list of records is drawn. */
export interface TableView<T> {
  readonly columns: readonly Column<T>[]
  keyOf(row: T): string
  /** What its rows are drawn from besides their records; a hook. */
  useBasis?(): string
  /** A CSS class for rows that are emphasized or dimmed. */
  markOf?(row: T): string
}

interface RowProps {
  row: Readonly<Record<string, unknown>>
  columns: TableView<never>['columns']
  mark: string | undefined
  /** Every time is drawn again when this changes. */
  stamp: string
}

const isNumber = (row: object | undefined, column: Column<never>) =>
  typeof row?.[headOf(column) as keyof typeof row] === 'number'

class Row extends Component<RowProps> {
  override shouldComponentUpdate({ row, columns, mark, stamp }: RowProps): boolean {
    const shown = this.props
    // Without a watch every row of an answer is a new one.
    const isSame = row === shown.row || JSON.stringify(row) === JSON.stringify(shown.row)
    return !isSame || columns !== shown.columns || mark !== shown.mark || stamp !== shown.stamp
  }

  override render({ row, columns, mark }: RowProps): JSX.Element {
    return (
      <tr class={mark}>
        {columns.map((column, i) => {
          // Called and not mounted: it keeps nothing, and a long table has thousands.
          const content = typeof column === 'object' ? column.cell(row as never) : Field({ name: column, record: row })
          return i === 0 ? (
            <th scope="row">{content}</th>
          ) : (
            <td key={i} class={isNumber(row, column) ? 'n' : undefined}>
              {content}
            </td>
          )
        })}
      </tr>
    )
  }
}

/** More than the window has room for: a row is 24 px high at least. */
const FIRST = innerHeight / 24

/** Columns that are always shown: which record, where it stands, and why. */
const LEAST = 3

/** Tables of this tab that show all their columns, however narrow the window is. */
const whole = new Set<string>()

/** How many columns fit. All are rendered once and measured, before the browser paints. */
function useFit(isOff: boolean) {
  const [fit, setFit] = useState(Infinity)
  const box = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const part = box.current
    if (isOff || !part) return
    // Rows that came since are wider.
    if (fit !== Infinity) return part.scrollWidth > part.clientWidth && fit > LEAST ? setFit(fit - 1) : undefined
    const most = part.clientWidth
    const from = part.getBoundingClientRect().left - part.scrollLeft
    const ends = [...part.querySelectorAll('th[scope=col]')].map((head) => head.getBoundingClientRect().right - from)
    setFit(Math.max(LEAST, ends.filter((end) => end < most + 1).length))
  })
  useLayoutEffect(() => {
    const measure = () => setFit(Infinity)
    addEventListener('resize', measure)
    return () => removeEventListener('resize', measure)
  }, [])
  return { box, fit }
}

interface TableProps<T> {
  label: string
  rows: readonly T[]
  look: TableView<T>
  /** It is what the page is about, and scrolls under its head. */
  isTall?: boolean
  /** Shown instead of an empty table. */
  empty?: ComponentChildren
}

export function Table<T>({ label, rows, look, isTall, empty }: TableProps<T>): JSX.Element {
  // What is above the fold does not wait for the hundreds below, which follow in the next frame.
  const [most, setMost] = useState(FIRST)
  useLayoutEffect(() => void requestAnimationFrame(() => setTimeout(setMost, 0, Infinity)), [])
  const basis = look.useBasis?.() ?? ''
  const redraw = useState({})[1]
  const isWhole = whole.has(label)
  const { box, fit } = useFit(isWhole)
  const all = look.columns as TableView<never>['columns']
  const columns = useMemo(() => (isWhole ? all : all.slice(0, fit)), [all, fit, isWhole])
  if (rows.length === 0) return <p class="empty">{empty ?? `No ${label.toLowerCase()}.`}</p>
  const hidden = all.slice(columns.length)
  const stamp = zoneName() + new Date().getDate() + basis
  const toggle = () => {
    if (!whole.delete(label)) whole.add(label)
    redraw({})
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class={isTall ? 'scroll tall' : 'scroll'} aria-label={label} tabIndex={0} ref={box}>
      <table>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th
                key={headOf(column)}
                scope="col"
                class={isNumber(rows[0] as object, column) ? 'n' : undefined}
                style={{ minWidth: typeof column === 'object' ? column.width : undefined }}
              >
                <Hint name={labelOf(headOf(column))} />
                {i === 0 && (isWhole || hidden.length > 0) && (
                  <>
                    {' '}
                    <button
                      type="button"
                      aria-expanded={isWhole}
                      title={hidden.map((each) => labelOf(headOf(each))).join(', ')}
                      onClick={toggle}
                    >
                      {isWhole ? '−' : `+${hidden.length}`}
                      <span class="hidden"> columns</span>
                    </button>
                  </>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row) => (
            <Row
              key={look.keyOf(row)}
              row={row as RowProps['row']}
              columns={columns}
              mark={look.markOf?.(row)}
              stamp={stamp}
            />
          ))}
        </tbody>
      </table>
    </section>
  )
}
