/** What a host gives the diagnostics router, checked once at construction. */

import type { Deployment, Inspectors } from '../contract/inspectors.js'
import { type JsonObject, toJson } from '../contract/json.js'
import { type RouterLimits, resolveLimits } from '../contract/limits.js'
import { resolveBounds, TIMER_MAX_MS } from '../contract/options.js'
import type { AdminAuth } from '../http/auth.js'
import type { Hooks } from './hooks.js'

export interface DiagnosticsRouterOptions extends Hooks {
  /** What can be asked. A missing inspector makes its routes answer 501. */
  inspectors: Inspectors
  /** Who may ask; there is no silent default. */
  auth: AdminAuth
  /** The whole public path under which this process sees the router. @default '' */
  prefix?: string | undefined
  /** @default { id: null, mode: 'direct' } */
  deployment?: Deployment | undefined
  /** The host's own entries of `capabilities.extensions`: JSON, not named `deployment_id` or `mode`. */
  extensions?: JsonObject | undefined
  /** Where the host mounts a dashboard, by convention; shown in the index. @default '/dashboard' */
  dashboardPath?: string | undefined
  /** Time for one request, authentication included. @default 5000 */
  deadlineMs?: number | undefined
  /** Lowers what a request may cost. */
  limits?: Partial<RouterLimits> | undefined
  /** Epoch milliseconds. @default Date.now */
  now?: (() => number) | undefined
}

export interface ResolvedOptions {
  inspectors: Inspectors
  auth: AdminAuth
  deployment: Deployment
  extensions: JsonObject
  dashboardPath: string
  deadlineMs: number
  limits: RouterLimits
  now: () => number
}

const DEADLINE_MS = 5_000
const EXTENSIONS_BYTES = 65_536

/** @throws TypeError or RangeError that names the option. */
export function resolveOptions(options: DiagnosticsRouterOptions): ResolvedOptions {
  const { inspectors, auth, deployment = { id: null, mode: 'direct' }, extensions = {} } = options
  const dashboardPath = options.dashboardPath ?? '/dashboard'
  if (inspectors === null || typeof inspectors !== 'object') throw new TypeError('inspectors must be an object')
  if (typeof auth?.authenticate !== 'function')
    throw new TypeError('auth is required: pass apiKeyAuth, noopAuth or your own')
  if (deployment.mode !== 'direct' && deployment.mode !== 'shared_store')
    throw new TypeError('deployment.mode must be "direct" or "shared_store"')
  if (deployment.id !== null && typeof deployment.id !== 'string')
    throw new TypeError('deployment.id must be a string or null')
  if (extensions === null || typeof extensions !== 'object' || Array.isArray(extensions))
    throw new TypeError('extensions must be a JSON object')
  for (const name of ['deployment_id', 'mode'])
    if (Object.hasOwn(extensions, name)) throw new TypeError(`extensions.${name} is the router's own`)
  if (typeof dashboardPath !== 'string') throw new TypeError('dashboardPath must be a string')
  const { deadlineMs } = resolveBounds(options, { deadlineMs: [DEADLINE_MS, TIMER_MAX_MS] })
  return {
    inspectors,
    auth,
    deployment: { id: deployment.id, mode: deployment.mode },
    // Copied through JSON: what could not be sent is refused now, and later changes of the host's object have no part.
    extensions: JSON.parse(toJson(extensions, EXTENSIONS_BYTES).text),
    dashboardPath,
    deadlineMs,
    limits: resolveLimits(options.limits),
    now: options.now ?? Date.now,
  }
}
