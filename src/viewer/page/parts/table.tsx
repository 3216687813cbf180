/** A real table of records; a row is drawn again only when its record is another one. */
import { Component, type ComponentChildren, type JSX } from 'preact'
import { plain } from '../words.js'
import { Field } from './field.js'

/** A field by its name, or what is made of several. */
export type Column<T> = (keyof T & string) | { readonly head: string; cell(row: T): ComponentChildren }

export const headOf = <T,>(column: Column<T>) => (typeof column === 'string' ? column : column.head)

/** Names that a column is too narrow for. */
const HEADS: Record<string, string> = {
  connection_waiters: 'waiters',
  active_drainers: 'drainers',
  staleness_ms: 'silent for',
  superseded_count: 'superseded',
}

/** How a list of records is drawn. */
export interface Look<T> {
  readonly columns: readonly Column<T>[]
  keyOf(row: T): string
  /** A class of the row, for what stands out or steps back. */
  markOf?(row: T): string
}

interface RowProps {
  row: Readonly<Record<string, unknown>>
  columns: Look<never>['columns']
  mark: string | undefined
}

const isNumber = (row: object | undefined, column: Column<never>) =>
  typeof row?.[headOf(column) as keyof typeof row] === 'number'

class Row extends Component<RowProps> {
  override shouldComponentUpdate({ row, columns, mark }: RowProps): boolean {
    const shown = this.props
    return row !== shown.row || columns !== shown.columns || mark !== shown.mark
  }

  override render({ row, columns, mark }: RowProps): JSX.Element {
    return (
      <tr class={mark}>
        {columns.map((column, i) => {
          const content = typeof column === 'object' ? column.cell(row as never) : <Field name={column} record={row} />
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

export function Table<T>({ label, rows, look }: { label: string; rows: readonly T[]; look: Look<T> }): JSX.Element {
  if (rows.length === 0) return <p class="empty">Nothing here.</p>
  const columns = look.columns as Look<never>['columns']
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={headOf(column)} scope="col" class={isNumber(rows[0] as object, column) ? 'n' : undefined}>
                {HEADS[headOf(column)] ?? plain(headOf(column))}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={look.keyOf(row)} row={row as RowProps['row']} columns={columns} mark={look.markOf?.(row)} />
          ))}
        </tbody>
      </table>
    </section>
  )
}
