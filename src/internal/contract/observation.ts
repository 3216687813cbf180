/** Observations of users: optional inspector methods that `/users` uses instead of scanning. */

import * as z from 'zod'
import type { Awaitable, IdPageQuery, Indexed, InspectionContext, Pingable, Versioned } from './page.js'

/**
 * What one source knows about one user, with the field names of `UserSummary`. Absent fields belong to other sources.
 * `observed_…` counts live entries: connected connections, active and idle contexts, open windows; the maps by status
 * count all. Counts are exact unless `truncated`. Lists contain each name once, in any order, at most 101 names.
 */
export interface UserPart {
  /** Id of the user. */
  user_id: string
  /** Set when a number or list here is cut short. */
  truncated?: boolean
  /** Number of connections. */
  observed_connections?: number
  /** Client types of the connections. */
  observed_client_types?: Iterable<string>
  /** Names of the offered actions. */
  observed_action_types?: Iterable<string>
  /** Ids of the clients. */
  observed_client_ids?: Iterable<string>
  /** Number of contexts. */
  observed_contexts?: number
  /** Number of contexts of each status. */
  contexts_by_status?: Record<string, number>
  /** Number of browser windows. */
  observed_browser_windows?: number
  /** Number of browser windows of each status. */
  browser_windows_by_status?: Record<string, number>
  /** Number of message streams. */
  observed_streams?: number
  /** Number of pending calls. */
  pending_rpc?: number
  /** The latest sign of life of any of the user's connections. */
  last_seen_at?: string | null
}

/** User ids in order, and whether some may be missing. */
export type UserIds = string[] &
  Indexed & {
    /**
     * Set if the bound of examined entries ended the page, not `limit`: all users up to this id are included, and the
     * next page continues here.
     */
    reached?: string
  }

/** Observations of some users. `truncated`: users without a part may exist. */
export type UserParts = UserPart[] & Indexed

/**
 * An optional index over users. A source without it is sampled within 10,000 entries, and so is one that returns `null`
 * because its index includes expired entries.
 */
export interface UserIndex extends Pingable, Versioned {
  /** Users greater than `after`, ordered by the UTF-8 bytes of their ids, at most `limit`. */
  listUserIds?(page: IdPageQuery, ctx: InspectionContext): Awaitable<UserIds | null>
  /** Returns what this source knows about these users (at most 500), one part per known user. */
  observeUsers?(userIds: readonly string[], ctx: InspectionContext): Awaitable<UserParts | null>
}

/** The sum of a user's entries. */
export interface FoldedPart extends Omit<UserPart, 'user_id'> {
  observed_client_types?: Set<string>
  observed_action_types?: Set<string>
  observed_client_ids?: Set<string>
}

/** Adds one entry of a family to its user's observation; defined next to each family's schema. */
export type Fold<Entry> = (part: FoldedPart, entry: Entry) => void

type ListField = 'observed_client_types' | 'observed_action_types' | 'observed_client_ids'

/** Adds the known names to a list of the part, and creates the list if needed. */
export function addNames(part: FoldedPart, field: ListField, names: Iterable<string | null>): void {
  part[field] ??= new Set()
  for (const name of names) if (name !== null) part[field].add(name)
}

/** `counts` with one more of `value`, each of `values` present. */
export function countOne(counts: Record<string, number> | undefined, values: readonly string[], value: string) {
  const more = counts ?? Object.fromEntries(values.map((name) => [name, 0]))
  more[value] = (more[value] ?? 0) + 1
  return more
}

/** Sums up all `entries` of one user. */
export function foldAll<Entry>(fold: Fold<Entry>, entries: readonly Entry[]): FoldedPart {
  const part: FoldedPart = {}
  for (const entry of entries) fold(part, entry)
  return part
}

// How entries are counted: in all, and by each value of the fields that their family names.

/** The bucket for entries whose field is `null`: the value was not reported. */
export const UNKNOWN = 'unknown'

/** `values` and the bucket `unknown`, for a field that can be `null`. */
export const orUnknown = <const Values extends readonly string[]>({ options }: { options: Values }) =>
  z.enum([...options, UNKNOWN] as [...Values, typeof UNKNOWN])

/** The fields of an entry that it is counted by, each with its values. */
export type CountedFields<Entry = never> = Readonly<Partial<Record<keyof Entry & string, z.ZodEnum>>>

/** Counts by `F`: `total`, and one `by_…` for each field. */
export type Counted<F> = { total: number } & {
  [K in keyof F & string as `by_${K}`]: Record<
    F[K] extends z.ZodType<infer Value extends string> ? Value : never,
    number
  >
}

/**
 * Counts `entries`, every value present. A `null` field counts as `unknown`.
 *
 * @throws TypeError for an invalid value: counted in the total only, it would make the parts look smaller than the
 * whole.
 */
export function countBy<Entry, F extends CountedFields<Entry>>(fields: F, entries: Iterable<Entry>): Counted<F> {
  let total = 0
  const counts: Record<string, Record<string, number>> = {}
  for (const [field, { options }] of Object.entries(fields) as [string, z.ZodEnum][])
    counts[`by_${field}`] = Object.fromEntries(options.map((option) => [option, 0]))
  for (const entry of entries) {
    total += 1
    for (const field of Object.keys(fields) as (keyof Entry & string)[]) {
      const values = counts[`by_${field}`] as Record<string, number>
      const value = String(entry[field] ?? UNKNOWN)
      if (!Object.hasOwn(values, value))
        throw new TypeError(`${field} of an entry must be one of ${Object.keys(values).join(', ')}`)
      values[value] = (values[value] ?? 0) + 1
    }
  }
  return { total, ...counts } as Counted<F>
}
