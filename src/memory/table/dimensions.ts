/** Cross tabulation: the number of records for each combination of a few enumerated fields, for exact counts. */

import { UNKNOWN } from '../../contract/counts.js'

/** A field with few values; `null` counts as `unknown`. `of` computes a value that is not a field of the record. */
export interface Dimension<R> {
  name: string
  values: readonly unknown[]
  of?: (record: R) => unknown
  /** Whether counts have a breakdown by it; otherwise it is only a filter. @default false */
  counted?: boolean
}

/** Returns the dimensions for the fields that a family is counted by. */
export const countedBy = (fields: Readonly<Record<string, { options: readonly string[] }>>) =>
  Object.entries(fields).map(([name, { options }]) => ({ name, values: options, counted: true }))

/** Numbers of records by cell. A cell is one combination of values. */
export type Tally = Map<number, number>

/** Counts in their wire format: `total` and one `by_…` per counted dimension, with every value present. */
export type Counts = { total: number; [by: `by_${string}`]: Record<string, number> }

/** Adds `by` to a cell; empty cells are removed. */
export function tallyUp(tally: Tally, cell: number, by: 1 | -1): void {
  const count = (tally.get(cell) ?? 0) + by
  if (count === 0) tally.delete(cell)
  else tally.set(cell, count)
}

/** Creates the cells of `dimensions`, and counts over them as the family's type `C`. */
export function createCells<R extends object, C = Counts>(dimensions: readonly Dimension<R>[]) {
  const read = ({ name, of }: Dimension<R>, record: R) => (of ? of(record) : record[name as keyof R]) ?? UNKNOWN
  return {
    has: (name: string) => dimensions.some((dimension) => dimension.name === name),

    /** Returns the cell of a record, in mixed radix. */
    cellOf(record: R): number {
      let cell = 0
      for (const dimension of dimensions)
        cell = cell * dimension.values.length + dimension.values.indexOf(read(dimension, record))
      return cell
    },

    /** Returns the counts of the cells that match `filter`; only its dimensions are used. */
    count(cells: Iterable<readonly [number, number]>, filter: Readonly<Record<string, unknown>>): C {
      const counts: Counts = { total: 0 }
      for (const { name, values, counted } of dimensions)
        if (counted) counts[`by_${name}`] = Object.fromEntries(values.map((value) => [String(value), 0]))
      for (const [cell, count] of cells) {
        const values = valuesOf(cell)
        if (!dimensions.every(({ name }, i) => filter[name] === undefined || filter[name] === values[i])) continue
        counts.total += count
        dimensions.forEach(({ name, counted }, i) => {
          const by = counted ? counts[`by_${name}`] : undefined
          if (by) by[String(values[i])] = (by[String(values[i])] ?? 0) + count
        })
      }
      return counts as C
    },
  }

  function valuesOf(cell: number): unknown[] {
    const values: unknown[] = []
    for (let i = dimensions.length - 1, rest = cell; i >= 0; i--) {
      const of = (dimensions[i] as Dimension<R>).values
      values[i] = of[rest % of.length]
      rest = Math.floor(rest / of.length)
    }
    return values
  }
}
