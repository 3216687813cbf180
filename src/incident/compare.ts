/** The differences between two readings of one list. The dashboard compares by these rules too: nothing else is imported here. */
import type { Json } from '../internal/contract/json.js'

/** One field of a row that has another value. */
export interface FieldChange {
  /** Names from the row down, joined by dots. */
  readonly field: string
  /** `undefined` where the row had no such field. */
  readonly before: Json | undefined
  /** `undefined` if the row no longer has the field. */
  readonly after: Json | undefined
}

/** Fields that change as long as a client or node lives. */
const LIVING = /^(?:last_seen_at|updated_at|observed_at|\w+_ms)$/

function fieldsOf(value: unknown, path: string, into: Map<string, Json>): Map<string, Json> {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    for (const [name, inner] of Object.entries(value))
      if (!LIVING.test(name)) fieldsOf(inner, path === '' ? name : `${path}.${name}`, into)
  } else if (value !== undefined) into.set(path, value as Json)
  return into
}

/** What is compared of a value: entries of a list have living fields, too. */
const comparedText = (value: Json | undefined) =>
  JSON.stringify(value, (name, inner) => (LIVING.test(name) ? undefined : inner))

function changesOf(before: object, after: object): FieldChange[] {
  const [was, is] = [fieldsOf(before, '', new Map()), fieldsOf(after, '', new Map())]
  const names = new Set([...was.keys(), ...is.keys()])
  return [...names].flatMap((field) => {
    const [a, b] = [was.get(field), is.get(field)]
    return comparedText(a) === comparedText(b) ? [] : [{ field, before: a, after: b }]
  })
}

/** The difference of two readings of a list, by the ids of its rows. */
export interface RowsDiff {
  /** Ids of rows that only the second reading has. */
  readonly added: readonly string[]
  /** Ids of rows that only the first reading has. */
  readonly gone: readonly string[]
  /** Rows that are in both and differ. */
  readonly changed: readonly { readonly id: string; readonly fields: readonly FieldChange[] }[]
  /** Number of rows that are equal in both. */
  readonly unchanged: number
}

/** Compares two readings of a list, which are whole: rows by id. */
export function compareRows(a: ReadonlyMap<string, object>, b: ReadonlyMap<string, object>): RowsDiff {
  const both = [...b].flatMap(([id, row]) => {
    const was = a.get(id)
    return was ? [{ id, fields: changesOf(was, row) }] : []
  })
  const changed = both.filter(({ fields }) => fields.length > 0)
  return {
    added: [...b.keys()].filter((id) => !a.has(id)),
    gone: [...a.keys()].filter((id) => !b.has(id)),
    changed,
    unchanged: both.length - changed.length,
  }
}
