/** What one source knows of its users without being scanned: the optional methods that `/users` builds on. */
import type { Awaitable, IdPageQuery, Indexed, InspectionContext, Pingable, Versioned } from './page.js'

/**
 * What one source knows of one user, under the names of `UserSummary`. Absent fields are not this source's to know.
 * `observed_…` counts what is live: connected connections, active and idle contexts, open windows; the maps by status count
 * all. Counts are exact unless `truncated`. Lists hold each name once, in any order; 101 names are as good as more.
 */
export interface UserPart {
  user_id: string
  /** Set when a number or list here is cut short. */
  truncated?: boolean
  observed_connections?: number
  observed_client_types?: Iterable<string>
  observed_action_types?: Iterable<string>
  observed_client_ids?: Iterable<string>
  observed_contexts?: number
  contexts_by_status?: Record<string, number>
  observed_browser_windows?: number
  browser_windows_by_status?: Record<string, number>
  observed_streams?: number
  pending_rpc?: number
  /** The latest sign of life of any of the user's connections. */
  last_seen_at?: string | null
}

/** User ids in order, and whether some may be missing. */
export type UserIds = string[] &
  Indexed & {
    /**
     * Where it stopped looking because of its bound, and not because `limit` was reached: all its users up to here are in.
     * The next page goes on from here.
     */
    reached?: string
  }

/** What a source knows of some users. `truncated`: of a user without a part it may only not know. */
export type UserParts = UserPart[] & Indexed

/**
 * An index over users that a source may keep. A source without it is sampled within 10,000 entries, and so is one that
 * answers `null`, because its index counts what has died and would have to be told apart first.
 */
export interface UserIndex extends Pingable, Versioned {
  /** Users greater than `after`, ordered by the UTF-8 bytes of their ids, at most `limit`. */
  listUserIds?(page: IdPageQuery, ctx: InspectionContext): Awaitable<UserIds | null>
  /** What this source knows of these users (at most 500), one part for each that it knows. */
  observeUsers?(userIds: readonly string[], ctx: InspectionContext): Awaitable<UserParts | null>
}

/** What entries say of their user, added up entry by entry. */
export interface FoldedPart extends Omit<UserPart, 'user_id' | 'truncated'> {
  observed_client_types?: Set<string>
  observed_action_types?: Set<string>
  observed_client_ids?: Set<string>
}

/** Adds one entry of a family to what is known of its user; each family's stands beside its schema. */
export type Fold<Entry> = (part: FoldedPart, entry: Entry) => void

type ListField = 'observed_client_types' | 'observed_action_types' | 'observed_client_ids'

/** Adds names to a list of the part, which is there from then on. */
export function addNames(part: FoldedPart, field: ListField, names: Iterable<string>): void {
  part[field] ??= new Set()
  for (const name of names) part[field].add(name)
}

/** `counts` with one more of `value`, each of `values` present. */
export function countOne(counts: Record<string, number> | undefined, values: readonly string[], value: string) {
  const more = counts ?? Object.fromEntries(values.map((name) => [name, 0]))
  more[value] = (more[value] ?? 0) + 1
  return more
}

/** What all `entries` of one user say. */
export function foldAll<Entry>(fold: Fold<Entry>, entries: readonly Entry[]): FoldedPart {
  const part: FoldedPart = {}
  for (const entry of entries) fold(part, entry)
  return part
}
