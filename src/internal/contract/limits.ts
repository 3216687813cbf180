/** Limits of the router and the facilities, each with its reason. */
import { count, defineOptions, type Read } from './options.js'

/** Most entries of one page: about 250 KiB of JSON, a few milliseconds of one core. */
export const PAGE_MAX = 500
/** Entries that one request may examine per source: keeps a request cheap whatever the size of the state. */
export const EXAMINED_MAX = 10_000
/** Entries that one question without an index may examine, of those: a page of users asks several lists. */
export const UNINDEXED_ENTRIES = 1_000
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
/** Maximum bytes of one externalised payload in a history response; eight times that for all payloads of a response. */
export const HYDRATION_BYTES = 1_048_576
/** Maximum bytes of a raw history sample; a larger sample is shortened. */
export const HISTORY_BYTES = 8 * HYDRATION_BYTES
/** Maximum bytes of a stored record, in a shared store and in memory. */
export const RECORD_BYTES = 65_536
/** Maximum bytes of the metadata of a node or a scope. */
export const METADATA_BYTES = 4_096
/** Levels of nesting in a JSON value that comes from outside; deeper ones crash `JSON.stringify`. */
export const JSON_DEPTH = 32
/** Names in one map of low-cardinality counters. */
export const COUNTER_NAMES = 32

/** Limits of a router per request. Each can be lowered, not raised. */
export const RouterLimits = defineOptions({
  /** Page size without a `limit`; at most `pageMax`. @default 100 */
  pageDefault: count(100, 100),
  /** Maximum `limit` of a page. @default 500 */
  pageMax: count(PAGE_MAX, PAGE_MAX),
  /** Number of messages of a raw history sample without a `limit`; at most `historyMax`. @default 100 */
  historyDefault: count(100, 100),
  /** Maximum `limit` of a raw history sample. @default 1000 */
  historyMax: count(1_000, 1_000),
  /** Maximum number of entries that one request examines per source. @default 10000 */
  examined: count(EXAMINED_MAX, EXAMINED_MAX),
})
export interface RouterLimits extends Read<typeof RouterLimits> {}

/** Lowers the default page sizes to their maximum. */
export const capDefaults = (limits: RouterLimits): RouterLimits => ({
  ...limits,
  pageDefault: Math.min(limits.pageDefault, limits.pageMax),
  historyDefault: Math.min(limits.historyDefault, limits.historyMax),
})
