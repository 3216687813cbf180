/** What a family says of itself, beside its schema: what the rest of the house would otherwise repeat. */
import type * as z from 'zod'
import type { Fold, FoldedPart } from './observation.js'

/** What a family says of users: the method that lists its entries, what these are, and what each adds. */
export interface UserEntries {
  readonly list: string
  readonly entry: z.ZodType<{ user_id: string }>
  /** The field that holds the id of an entry. */
  readonly id: string
  /** Is given what `entry` read. */
  fold(part: FoldedPart, entry: { user_id: string }): void
}

/** `UserEntries` whose parts agree. `list` takes a filter with `user_id`, a page and an ask. */
export function foldUsers<const List extends string, Entry extends { user_id: string }>(
  list: List,
  entry: z.ZodType<Entry>,
  id: keyof Entry & string,
  fold: Fold<Entry>,
) {
  return { list, entry, id, fold }
}

/** The methods that an inspector cannot do without. */
type MethodOf<Inspector> = {
  [Name in keyof Inspector & string]-?: undefined extends Inspector[Name] ? never : Name
}[keyof Inspector & string]

/** One family. The table of all of them is in `families.ts`; `Inspector` is the port that its routes ask. */
export interface Family<Inspector = Readonly<Record<string, unknown>>> {
  /** What compositions call the facility with this inspector. */
  readonly facility: string
  /** That the inspector is there; also its name as a source of aggregates. */
  readonly capability: string
  /** What an inspector is one by. */
  readonly methods: Readonly<Record<MethodOf<Inspector>, true>>
  /** Optional methods that are capabilities of their own, each by the name of its capability. */
  readonly operations: Readonly<Record<string, keyof Inspector & string>>
  /** The same for those that are no booleans of the capabilities, but named in `extensions.operations`. */
  readonly listed?: Readonly<Record<string, keyof Inspector & string>>
  /** The whole family came after the booleans: what it is capable of is named in `extensions.operations`. */
  readonly isListed?: true
  /** Records and enums that several routes share, by their names in the OpenAPI document. */
  readonly components: Readonly<Record<string, z.ZodType>>
  /** What its entries are counted by, where a route counts them. */
  readonly counted?: Readonly<Record<string, z.ZodEnum>>
  /** Where its entries belong to users. */
  readonly users?: UserEntries & { readonly list: keyof Inspector & string }
}
