/** What a host gives the metrics, checked once at construction. */

import {
  ANYTHING,
  checkOptions,
  FUNCTION,
  HOOK,
  having,
  invalidOption,
  LIST,
  needed,
  optionsOf,
  resolveBounds,
  type Shape,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/checks.js'
import { INSPECTORS, type Inspectors } from '../contract/families.js'
import { checkId } from '../contract/ids.js'
import type { Deployment } from '../contract/inspectors.js'
import { EXAMINED_MAX } from '../contract/limits.js'
import type { AdminAuth } from '../http/auth.js'

/** Where an error that no scraper is shown came from. */
export interface MetricsErrorPlace {
  /** The inspector that it came from, by its capability, where it came from one. */
  source?: string
}

export interface MetricsOptions {
  /** What is asked; a composition has them. Of one that is missing there are no series. */
  inspectors: Inspectors
  /**
   * Who may scrape; there is no silent default. A key is taken from `Authorization: Bearer` too, also where `auth` reads
   * `X-Admin-Key`: a scraper cannot send headers of its own.
   */
  auth: AdminAuth
  /** Which installation answers; a composition says it. @default { id: null, mode: 'direct' } */
  deployment?: Deployment | undefined
  /** The whole public path under which this process sees it. @default '/metrics' */
  prefix?: string | undefined
  /** What may stand in a label beyond nodes, statuses and reasons. @default nothing */
  labels?: MetricLabels | undefined
  /** Time for one scrape, authentication included: it answers with what it has by then. @default 1000 */
  deadlineMs?: number | undefined
  /** Entries that each source may look at for one scrape, at most 10000; of more, numbers are a sample. @default 1000 */
  examined?: number | undefined
  /** Epoch milliseconds. @default Date.now */
  now?: (() => number) | undefined
  /**
   * Called with whatever an inspector or an authenticator threw, and for each record that could not be read: at most 100 of
   * one scrape. What it throws changes no answer. `null` for nobody. @default console.error, with the place and the stack
   */
  onError?: ((error: unknown, place: MetricsErrorPlace) => void) | null | undefined
}

export interface MetricLabels {
  /** Scopes of delivery that are told of by name: their ids, at most 50. @default none */
  scopes?: readonly string[] | undefined
}

export interface ResolvedMetricsOptions {
  inspectors: Inspectors
  auth: AdminAuth
  deployment: Deployment
  prefix: string
  scopes: readonly string[]
  deadlineMs: number
  examined: number
  now: () => number
}

const DEADLINE_MS = 1_000
const EXAMINED = 1_000
// Each is a question of its own.
const SCOPES_MAX = 50

const LABELS: Shape<MetricLabels> = { scopes: LIST }

const OPTIONS: Shape<MetricsOptions> = {
  inspectors: needed(INSPECTORS),
  auth: needed({
    ...having('authenticate'),
    said: 'apiKeyAuth(), bearerAuth(), noopAuth() or an object with authenticate()',
  }),
  deployment: optionsOf({ id: ANYTHING, mode: ANYTHING }),
  prefix: TEXT,
  labels: optionsOf(LABELS),
  deadlineMs: ANYTHING,
  examined: ANYTHING,
  now: FUNCTION,
  onError: HOOK,
}

function checkScopes(scopes: readonly unknown[]): readonly string[] {
  if (scopes.length > SCOPES_MAX)
    throw new RangeError(invalidOption('labels.scopes', `at most ${SCOPES_MAX} scopes`, scopes.length))
  for (const scope of scopes) {
    const reason = typeof scope === 'string' ? checkId(scope) : 'must be a string'
    if (reason !== undefined) throw new TypeError(`Invalid option "labels.scopes": a scope ${reason}`)
  }
  return [...new Set(scopes as readonly string[])]
}

/** @throws TypeError or RangeError that names the option. */
export function resolveMetricsOptions(options: MetricsOptions): ResolvedMetricsOptions {
  checkOptions(options, OPTIONS)
  const { inspectors, auth, deployment = { id: null, mode: 'direct' }, prefix = '/metrics', labels, now } = options
  if (deployment.mode !== 'direct' && deployment.mode !== 'shared_store')
    throw new TypeError(invalidOption('deployment.mode', '"direct" or "shared_store"', deployment.mode))
  if (deployment.id !== null && typeof deployment.id !== 'string')
    throw new TypeError(invalidOption('deployment.id', 'a string or null', deployment.id))
  const bounds = resolveBounds(options, {
    deadlineMs: [DEADLINE_MS, TIMER_MAX_MS],
    examined: [EXAMINED, EXAMINED_MAX],
  })
  const scopes = checkScopes(labels?.scopes ?? [])
  return { inspectors, auth, deployment: { ...deployment }, prefix, scopes, ...bounds, now: now ?? Date.now }
}
