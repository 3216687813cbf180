/** Rows of entries that do not change any more, made once, for the newest entries. */
import { deepFreeze } from '../../internal/contract/json.js'

/** The newest entries, so many, are those whose rows are kept. */
const ROWS_KEPT = 2_048

/**
 * Returns a function that returns the row of an entry, made by `make` and frozen, so that it is read through its schema once.
 * `place` is that of the row in its list, the newest the highest.
 */
export function createKeptRows<Entry, Row>() {
  const kept: { readonly place: number; readonly entry: Entry; readonly row: Row }[] = []
  return (place: number, entry: Entry, make: () => Row): Row => {
    const index = place % ROWS_KEPT
    const known = kept[index]
    if (known?.place === place && known.entry === entry) return known.row
    const row = deepFreeze(make())
    if (!known || known.place <= place) kept[index] = { place, entry, row }
    return row
  }
}
