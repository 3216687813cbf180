/** The options of the metrics handler. */

import { Deployment, INSPECTORS } from '../internal/contract/families.js'
import { checkId } from '../internal/contract/ids.js'
import { EXAMINED_MAX } from '../internal/contract/limits.js'
import {
  count,
  custom,
  defineOptions,
  func,
  hook,
  type Input,
  madeBy,
  text,
  timer,
} from '../internal/contract/options.js'
import type { AdminAuth } from '../internal/http/auth.js'

/** Where an error came from that the scraper does not see. */
export interface MetricsErrorPlace {
  /** Capability of the inspector that failed, if one did. */
  source?: string
}

// Each one is a query of its own.
const SCOPES_MAX = 50

const isScopes = (value: unknown) =>
  Array.isArray(value) &&
  value.length <= SCOPES_MAX &&
  value.every((scope) => typeof scope === 'string' && checkId(scope) === undefined)

/** Labels that are added to every metric. */
export const MetricLabels = defineOptions({
  /** Ids of the delivery scopes that get series of their own, at most 50. @default none */
  scopes: custom<readonly string[]>(`an array of at most ${SCOPES_MAX} valid scope ids`, isScopes).default([]),
})
export interface MetricLabels extends Input<typeof MetricLabels> {}

/** Options of the metrics exporters. */
export const MetricsOptions = defineOptions({
  /** Inspectors to scrape; a composition returns them. Missing inspectors produce no series. */
  inspectors: INSPECTORS,
  /**
   * Authenticates the scraper. Required; there is no silent default. A key is also accepted from `Authorization: Bearer` if
   * `auth` reads `X-Admin-Key`, because a scraper can't send headers of its own.
   */
  auth: madeBy<AdminAuth>('apiKeyAuth(), bearerAuth(), noopAuth()', 'authenticate'),
  /** Deployment that the series name; a composition returns it. @default { id: null, mode: 'direct' } */
  deployment: Deployment.prefault({ id: null, mode: 'direct' }),
  /** Public path of the handler, as this process sees it. @default '/metrics' */
  prefix: text().default('/metrics'),
  /** Label values beyond nodes, statuses and reasons. @default none */
  labels: MetricLabels.prefault({}),
  /** Timeout of one scrape in ms, authentication included; the response has what was read by then. @default 1000 */
  deadlineMs: timer(1_000),
  /** Maximum number of entries that one scrape examines per source; with more, the numbers are a sample. @default 1000 */
  examined: count(1_000, EXAMINED_MAX),
  /** Returns the time in epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
  /**
   * Called with errors that an inspector or an authenticator throws, and for each invalid record: at most 100 per scrape. Errors
   * that it throws don't change the response. `null` disables it. @default console.error, with the place and the stack
   */
  onError: hook<(error: unknown, place: MetricsErrorPlace) => void>(),
})
export interface MetricsOptions extends Input<typeof MetricsOptions> {}
