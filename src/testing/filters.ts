/** What the suites ask an inspector for: values that its entries have, and some that none has. */

/** An id that no entry has. */
export const NOBODY = 'no-such-entry-4f1d'

/** Values of a filter and records by id that are tried; more would only take longer. */
export const IDS_TRIED = 20

/** Filters worth trying: every value that occurs, one that no entry has, and all values of one entry together. */
export function filtersIn<Item extends object>(
  entries: readonly Item[],
  fields: readonly (keyof Item & string)[],
): Partial<Item>[] {
  const found: Partial<Item>[] = []
  for (const field of fields) {
    const values = [...new Set(entries.map((entry) => entry[field]))].filter((value) => value !== null)
    for (const value of values.slice(0, IDS_TRIED)) found.push({ [field]: value } as unknown as Partial<Item>)
    if (field.endsWith('_id')) found.push({ [field]: NOBODY } as unknown as Partial<Item>)
  }
  const last = entries.at(-1)
  if (last)
    found.push(
      Object.fromEntries(
        fields.filter((field) => last[field] !== null).map((field) => [field, last[field]]),
      ) as Partial<Item>,
    )
  return found
}
