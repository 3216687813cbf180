/** A real table of records; a row is drawn again only when its record is another one. */
import { Component, type ComponentChildren, type JSX } from 'preact'
import { plain } from '../words.js'

export interface Column<T> {
  head: string
  cell(row: T): ComponentChildren
  /** Numbers stand at the right. */
  isNumber?: true
}

interface RowProps<T> {
  row: T
  columns: readonly Column<T>[]
  mark: string
}

class Row<T> extends Component<RowProps<T>> {
  override shouldComponentUpdate({ row, columns, mark }: RowProps<T>): boolean {
    const shown = this.props
    return row !== shown.row || columns !== shown.columns || mark !== shown.mark
  }

  override render({ row, columns, mark }: RowProps<T>): JSX.Element {
    return (
      <tr class={mark}>
        {columns.map(({ head, cell, isNumber }, i) => {
          const content = cell(row)
          if (i === 0) return <th scope="row">{content}</th>
          return (
            <td key={head} class={isNumber && 'n'}>
              {content}
            </td>
          )
        })}
      </tr>
    )
  }
}

interface TableProps<T> {
  label: string
  rows: readonly T[]
  columns: readonly Column<T>[]
  keyOf(row: T): string
  /** A class of the row, for what stands out or steps back. */
  markOf?(row: T): string
}

export function Table<T>({ label, rows, columns, keyOf, markOf = () => '' }: TableProps<T>): JSX.Element {
  if (rows.length === 0) return <p class="empty">Nothing here.</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ head, isNumber }) => (
              <th key={head} scope="col" class={isNumber && 'n'}>
                {plain(head)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} columns={columns as readonly Column<unknown>[]} mark={markOf(row)} />
          ))}
        </tbody>
      </table>
    </section>
  )
}
