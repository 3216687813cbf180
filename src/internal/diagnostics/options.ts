/** The options of the diagnostics router, read once at construction. */

import { withDeployment } from '../contract/delivery-rules.js'
import { Deployment, INSPECTORS } from '../contract/families.js'
import { type JsonObject, toJson } from '../contract/json.js'
import { capDefaults, RouterLimits } from '../contract/limits.js'
import {
  defineOptions,
  func,
  type Input,
  madeBy,
  object,
  origins,
  readOptions,
  text,
  timer,
  withMethods,
} from '../contract/options.js'
import type { AdminAuth, AdminPrincipal } from '../http/auth.js'
import type { Authorize } from './authorization.js'
import { Hooks } from './hooks.js'
import type { PastAnswers } from './instants.js'

/** Options of `createDiagnosticsRouter`. */
export const DiagnosticsRouterOptions = defineOptions({
  /** Inspectors to read from. The routes of a missing inspector return 501. */
  inspectors: INSPECTORS,
  /** Authenticates the caller. Required; there is no silent default. */
  auth: madeBy<AdminAuth>('apiKeyAuth(), bearerAuth(), noopAuth()', 'authenticate'),
  /** Decides what the caller may see, per valid request. @default an authenticated caller sees everything */
  authorize: func<Authorize>().optional(),
  /** Public path of the router, as this process sees it. @default '' */
  prefix: text().default(''),
  /**
   * Exact origins whose pages may read responses, like `https://ops.example.org`, for example of a dashboard elsewhere.
   * @default []
   */
  cors: origins(),
  /** Deployment that the responses name; a composition returns it. @default { id: null, mode: 'direct' } */
  deployment: Deployment.prefault({ id: null, mode: 'direct' }),
  /** Your own entries of `capabilities.extensions`: JSON, except `deployment_id`, `mode` and `operations`. @default {} */
  extensions: object<JsonObject>().default({}),
  /** Path of the dashboard, shown in the index. @default '/dashboard' */
  dashboardPath: text().default('/dashboard'),
  /**
   * What was known at past instants, such as a recorder from `createFlightRecorder`: below `/at/{epoch ms}` every route
   * answers as of that instant, for callers that `auth` and `authorize` allow it now. @default none
   */
  recorder: withMethods<PastAnswers>('at').optional(),
  /** Timeout of one request in ms, authentication included. @default 5000 */
  deadlineMs: timer(5_000),
  /** Lowers the limits of a request. */
  limits: RouterLimits.prefault({}),
  /** Returns the time in epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
  /**
   * Returns the request id for `onAccess`, for example from a header that your proxy sets. A value that is not a valid id is
   * reported as `null`; errors go to `onError`. Not called when nothing receives access records. @default none
   */
  requestId: func<(request: Request) => string | null | undefined>().default(() => () => null),
  ...Hooks.shape,
})
export interface DiagnosticsRouterOptions<Principal extends AdminPrincipal = AdminPrincipal>
  extends Omit<Input<typeof DiagnosticsRouterOptions>, 'auth' | 'authorize'> {
  /** Authenticates the caller. Required; there is no silent default. */
  auth: AdminAuth<Principal>
  /** Decides what the caller may see, per well-formed request. @default an authenticated caller sees everything */
  authorize?: Authorize<Principal> | undefined
}

export type ResolvedOptions = ReturnType<typeof resolveOptions>

/** Maximum bytes of the host's entries of `capabilities.extensions`. */
export const EXTENSIONS_BYTES = 65_536

/** @throws TypeError or RangeError that names the option. */
export function resolveOptions<Principal extends AdminPrincipal>(options: DiagnosticsRouterOptions<Principal>) {
  const { extensions, limits, ...read } = readOptions(DiagnosticsRouterOptions, options)
  for (const name of ['deployment_id', 'mode', 'operations'])
    if (Object.hasOwn(extensions, name))
      throw new TypeError(`Unknown option "extensions.${name}". The router sets it; choose another name`)
  const { auth, authorize } = options
  // Copied as JSON: this fails now if it cannot be sent, and later changes of the caller's object have no effect.
  const copy: JsonObject = JSON.parse(toJson(extensions, EXTENSIONS_BYTES).text)
  const { delivery } = read.inspectors
  // One composed with inspectors of others, such as those of a queue, does not know the deployment.
  const inspectors = { ...read.inspectors, ...(delivery && { delivery: withDeployment(delivery, read.deployment.id) }) }
  return { ...read, inspectors, auth, authorize, extensions: copy, limits: capDefaults(limits) }
}
