/** Runs a request against the inspectors, within its limits: once for a GET, repeatedly for a watch. */
import type { Deadline } from '../async/deadline.js'
import { CAPABILITIES } from '../contract/capabilities.js'
import type { FamilyName } from '../contract/families.js'
import type { Awaitable } from '../contract/page.js'
import { createInspectionContext } from '../http/inspection-context.js'
import { type RequestOutcome, read, type readQuery } from '../http/read.js'
import { type PreparedRoute, prepareRoute } from '../http/read-route.js'
import type { AccessScope } from './authorization.js'
import type { ResolvedOptions } from './options.js'
import type { DiagnosticsRoute } from './route.js'
import { ROUTES } from './routes.js'
import { familiesOf, versionWithin } from './tags.js'

/** A route, prepared for requests. */
export interface RequestedRoute extends Omit<PreparedRoute<never, never>, 'route'> {
  route: DiagnosticsRoute
  /** The inspectors that its responses are read from. */
  families: readonly FamilyName[]
}

/** A route with its path. */
export type PlacedRoute = RequestedRoute & { path: string }

let known: { limits: string; routes: readonly PlacedRoute[] } | undefined

/**
 * All routes within `limits`. Kept for the next router, which mostly has the same: a host with a router for each of its
 * tenants pays for the schemas of their queries once.
 */
export function requestedRoutes(limits: ResolvedOptions['limits']): readonly PlacedRoute[] {
  const key = JSON.stringify(limits)
  if (known?.limits === key) return known.routes
  const routes = ROUTES.map((route) => ({
    ...prepareRoute(route, limits),
    route,
    families: familiesOf(route),
    path: route.path,
  }))
  known = { limits: key, routes }
  return routes
}

/** A parsed request: its parameters, what its caller may see, and its deadline. */
interface CheckedRequest {
  params: Record<string, string>
  given: ReturnType<typeof readQuery>
  accessScope: AccessScope
  deadline: Deadline
}

/** A request that can be run. */
export interface Question {
  /** The version of the sources, or `null` if unknown. @param isWatched Whether a remote store may be read for it. */
  version(isWatched: boolean): Awaitable<string | null>
  answer(): Promise<RequestOutcome>
}

/** Receives errors, with the name of the source if one caused it. */
type ReportError = (error: unknown, source?: string) => void

/** @returns a function that prepares requests of one router. */
export function createQuestions({
  deployment,
  deadlineMs,
  limits,
  now,
}: Pick<ResolvedOptions, 'deployment' | 'deadlineMs' | 'limits' | 'now'>) {
  // One object for all requests; an inspector that writes to it must not lift the bounds of others.
  const inspectionLimits = Object.freeze({ examined: limits.examined })

  return (
    asked: RequestedRoute,
    { params, given, accessScope, deadline }: CheckedRequest,
    handled: Set<unknown>,
    reportError: ReportError,
  ): Question => {
    const { inspectors, service, users } = accessScope
    const [need] = asked.route.needs
    const source = need && CAPABILITIES.inspectorOf(need)
    const ctx = createInspectionContext(deadline, inspectionLimits, (error) => reportError(error, source))
    const view = {
      ctx,
      now,
      service,
      deadlineMs,
      onError(failed: string, error: unknown) {
        handled.add(error)
        reportError(error, failed)
      },
    }
    return {
      version: (isWatched) =>
        asked.route.unversioned ? null : versionWithin(deadline, asked.families, inspectors, ctx, isWatched),
      answer: () => read(asked as never, inspectors, { params, given, deployment, users, deadline }, view),
    }
  }
}
