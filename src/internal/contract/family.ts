/** Static description of a family besides its schema. */
import type * as z from 'zod'
import type { Fold, FoldedPart } from './observation.js'

/** How a family contributes to user observations: its list method, its entries, and what each entry adds. */
export interface UserEntries {
  readonly list: string
  readonly entry: z.ZodType<{ user_id: string }>
  /** The field that holds the id of an entry. */
  readonly id: string
  /** Is given what `entry` read. */
  fold(part: FoldedPart, entry: { user_id: string }): void
}

/** Creates `UserEntries` with matching types. `list` takes a filter with `user_id`, a page and a context. */
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

/**
 * The description of one family. `families.ts` lists all of them; `Inspector` is the interface that its routes read.
 */
export interface Family<Inspector = Readonly<Record<string, unknown>>> {
  /** What compositions call the facility with this inspector. */
  readonly facility: string
  /** That the inspector is there; also its name as a source of aggregates. */
  readonly capability: string
  /** The methods that every inspector of the family must have. */
  readonly methods: Readonly<Record<MethodOf<Inspector>, true>>
  /** Optional methods that are capabilities of their own, each by the name of its capability. */
  readonly operations: Readonly<Record<string, keyof Inspector & string>>
  /** The same for operations without a boolean capability, listed in `extensions.operations`. */
  readonly listed?: Readonly<Record<string, keyof Inspector & string>>
  /** Whether the family itself has no boolean capability and is listed in `extensions.operations`. */
  readonly isListed?: true
  /** Records and enums that several routes share, by their names in the OpenAPI document. */
  readonly components: Readonly<Record<string, z.ZodType>>
  /** The fields that its entries are counted by, if a route counts them. */
  readonly counted?: Readonly<Record<string, z.ZodEnum>>
  /** Where its entries belong to users. */
  readonly users?: UserEntries & { readonly list: keyof Inspector & string }
}
