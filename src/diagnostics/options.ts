/** What a host gives the diagnostics router, checked once at construction. */

import {
  ANYTHING,
  checkOptions,
  FUNCTION,
  HOOK,
  having,
  invalidOption,
  needed,
  OBJECT,
  optionsOf,
  resolveBounds,
  type Shape,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/checks.js'
import { INSPECTORS, type Inspectors } from '../contract/families.js'
import type { Deployment } from '../contract/inspectors.js'
import { type JsonObject, toJson } from '../contract/json.js'
import { type RouterLimits, resolveLimits } from '../contract/limits.js'
import type { AdminAuth, AdminPrincipal } from '../http/auth.js'
import type { Authorize } from './authorization.js'
import type { Hooks } from './hooks.js'

export interface DiagnosticsRouterOptions<Principal extends AdminPrincipal = AdminPrincipal> extends Hooks {
  /** What can be asked. A missing inspector makes its routes answer 501. */
  inspectors: Inspectors
  /** Who may ask; there is no silent default. */
  auth: AdminAuth<Principal>
  /** Who may see what of it; asked for each request, once it is known to be well-formed. @default whoever may ask sees everything */
  authorize?: Authorize<Principal> | undefined
  /** The whole public path under which this process sees the router. @default '' */
  prefix?: string | undefined
  /** Which installation answers; a composition says it. @default { id: null, mode: 'direct' } */
  deployment?: Deployment | undefined
  /** The host's own entries of `capabilities.extensions`: JSON, not named `deployment_id`, `mode` or `operations`. */
  extensions?: JsonObject | undefined
  /** Where the host mounts a dashboard, by convention; shown in the index. @default '/dashboard' */
  dashboardPath?: string | undefined
  /** Time for one request, authentication included. @default 5000 */
  deadlineMs?: number | undefined
  /** Lowers what a request may cost. */
  limits?: Partial<RouterLimits> | undefined
  /** Epoch milliseconds. @default Date.now */
  now?: (() => number) | undefined
  /**
   * What the host calls a request, for `onAccess`: of a header that a proxy of its own sets, for example. What cannot be an
   * id is told as `null`; what is thrown goes to `onError`. @default none
   */
  requestId?: ((request: Request) => string | null | undefined) | undefined
}

export interface ResolvedOptions<Principal extends AdminPrincipal = AdminPrincipal> {
  inspectors: Inspectors
  auth: AdminAuth<Principal>
  authorize: Authorize<Principal> | undefined
  deployment: Deployment
  extensions: JsonObject
  dashboardPath: string
  deadlineMs: number
  limits: RouterLimits
  now: () => number
  requestId: (request: Request) => string | null | undefined
}

const DEADLINE_MS = 5_000
const EXTENSIONS_BYTES = 65_536

const OPTIONS: Shape<DiagnosticsRouterOptions> = {
  inspectors: needed(INSPECTORS),
  auth: needed({
    ...having('authenticate'),
    said: 'apiKeyAuth(), bearerAuth(), noopAuth() or an object with authenticate()',
  }),
  prefix: TEXT,
  deployment: optionsOf({ id: ANYTHING, mode: ANYTHING }),
  extensions: OBJECT,
  dashboardPath: TEXT,
  deadlineMs: ANYTHING,
  limits: OBJECT,
  now: FUNCTION,
  requestId: FUNCTION,
  authorize: FUNCTION,
  onAccess: FUNCTION,
  onError: HOOK,
}

/** @throws TypeError or RangeError that names the option. */
export function resolveOptions<Principal extends AdminPrincipal>(
  options: DiagnosticsRouterOptions<Principal>,
): ResolvedOptions<Principal> {
  checkOptions(options, OPTIONS)
  const { inspectors, auth, deployment = { id: null, mode: 'direct' }, extensions = {} } = options
  const dashboardPath = options.dashboardPath ?? '/dashboard'
  if (deployment.mode !== 'direct' && deployment.mode !== 'shared_store')
    throw new TypeError(invalidOption('deployment.mode', '"direct" or "shared_store"', deployment.mode))
  if (deployment.id !== null && typeof deployment.id !== 'string')
    throw new TypeError(invalidOption('deployment.id', 'a string or null', deployment.id))
  for (const name of ['deployment_id', 'mode', 'operations'])
    if (Object.hasOwn(extensions, name))
      throw new TypeError(`Unknown option "extensions.${name}". The router sets it; choose another name`)
  const { authorize, requestId } = options
  const { deadlineMs } = resolveBounds(options, { deadlineMs: [DEADLINE_MS, TIMER_MAX_MS] })
  return {
    inspectors,
    auth,
    authorize,
    deployment: { id: deployment.id, mode: deployment.mode },
    // Copied through JSON: what could not be sent is refused now, and later changes of the host's object have no part.
    extensions: JSON.parse(toJson(extensions, EXTENSIONS_BYTES).text),
    dashboardPath,
    deadlineMs,
    limits: resolveLimits(options.limits),
    now: options.now ?? Date.now,
    requestId: requestId ?? (() => null),
  }
}
