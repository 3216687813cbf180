/** The bounds that a caller of the router or of a facility can meet, each beside its reason. */
import { boundsIn, checkBound, checkOptions } from './checks.js'

/** Entries of a page when the caller names no `limit`. */
const PAGE_DEFAULT = 100
/** Most entries of one page: about 250 KiB of JSON, a few milliseconds of one core. */
export const PAGE_MAX = 500
/** Messages of a raw history sample when the caller names no `limit`. */
const HISTORY_DEFAULT = 100
/** Most messages of one raw history sample. */
const HISTORY_MAX = 1_000
/** Entries that one request may examine per source: what keeps a request cheap whatever the size of the state. */
export const EXAMINED_MAX = 10_000
/** Pages that one request may fetch per source, for inspectors whose pages are short or empty. */
export const SAMPLE_PAGES_MAX = 100
/** Entries of an `observed_…` list; a longer one is cut and its source named as truncated. */
export const OBSERVED_MAX = 100
/** Bytes of an inspector's own page token. */
export const TOKEN_BYTES = 360
/** Bytes of a cursor on the wire: a token with its binding, in base64url. */
export const CURSOR_BYTES = 512
/** Bytes of an id, in UTF-8. */
export const ID_BYTES = 256
/** Bytes of one externalised payload that a history answer will carry, and of all of one answer together eight times that. */
export const HYDRATION_BYTES = 1_048_576
/** Bytes of the texts that one raw history sample is made of: it is shorter rather than larger, and what they stand for is. */
export const HISTORY_BYTES = 8 * HYDRATION_BYTES
/** Bytes of a stored record: what a shared store refuses at write, and memory with it. */
export const RECORD_BYTES = 65_536
/** Bytes of what a host says of a node or a scope. */
export const METADATA_BYTES = 4_096
/** Levels of nesting in a JSON value that comes from outside; deeper ones crash `JSON.stringify`. */
export const JSON_DEPTH = 32
/** Names in one map of low-cardinality counters. */
export const COUNTER_NAMES = 32

/** What a router reads per request; a host may lower each, never raise it. */
export interface RouterLimits {
  /** Entries of a page without a `limit`. @default 100 */
  pageDefault: number
  /** Greatest `limit` of a page. @default 500 */
  pageMax: number
  /** Messages of a raw history sample without a `limit`. @default 100 */
  historyDefault: number
  /** Greatest `limit` of a raw history sample. @default 1000 */
  historyMax: number
  /** Entries examined per source and request. @default 10000 */
  examined: number
}

const CEILING: RouterLimits = {
  pageDefault: PAGE_DEFAULT,
  pageMax: PAGE_MAX,
  historyDefault: HISTORY_DEFAULT,
  historyMax: HISTORY_MAX,
  examined: EXAMINED_MAX,
}

/**
 * The limits a router works with: the library's, lowered where the host says so.
 *
 * @throws TypeError for an unknown name; RangeError for what is not a whole number from 1 and for a value above the library's.
 */
export function resolveLimits(given: Partial<RouterLimits> = {}): RouterLimits {
  checkOptions(given, boundsIn(CEILING), 'limits.')
  const limits = { ...CEILING }
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    const ceiling = CEILING[name as keyof RouterLimits]
    limits[name as keyof RouterLimits] = checkBound(`limits.${name}`, value, ceiling)
  }
  limits.pageDefault = Math.min(limits.pageDefault, limits.pageMax)
  limits.historyDefault = Math.min(limits.historyDefault, limits.historyMax)
  return limits
}
