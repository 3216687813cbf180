/** Runs a request against the inspectors, within its limits. */
import type { Deadline } from '../async/deadline.js'
import { CAPABILITIES } from '../contract/capabilities.js'
import type { FamilyName, Present } from '../contract/families.js'
import type { Awaitable, InspectionContext, InspectionLimits, Versioned } from '../contract/page.js'
import { comparedText, isAnyNamed, isNamed, isWhole, weakTag } from '../http/etag.js'
import { type RequestOutcome, read, type readQuery } from '../http/read.js'
import { type PreparedRoute, prepareRoute } from '../http/read-route.js'
import { type HttpReply, jsonReply, notModified } from '../http/respond.js'
import type { AccessScope } from './authorization.js'
import type { ResolvedOptions } from './options.js'
import type { DiagnosticsRoute } from './route.js'
import { ROUTES } from './routes.js'

// Creates the context passed to inspectors.

// A symbol instead of a private field, so that a wrapper that inherits from the context, or a Proxy, finds it too.
const DEADLINE = Symbol('deadline')

/** The signal is created on first access: most inspectors return immediately and never read it. */
const SIGNAL: PropertyDescriptor & ThisType<InspectionContext & { readonly [DEADLINE]: Deadline }> = {
  configurable: true,
  enumerable: true,
  get() {
    return this[DEADLINE].signal
  },
  set(value: AbortSignal) {
    Object.defineProperty(this, 'signal', { value, configurable: true, enumerable: true, writable: true })
  },
}

/** `limits` bound the cost of one request; `onError` is called for each record that an inspector skipped. */
export function createInspectionContext(
  deadline: Deadline,
  limits: InspectionLimits,
  onError: (error: unknown) => void,
): InspectionContext {
  const ctx = { limits } as InspectionContext
  // Not enumerable: a copy or a log of the context shows the limits and the signal only.
  Object.defineProperty(ctx, DEADLINE, { value: deadline })
  Object.defineProperty(ctx, 'onError', { value: onError })
  // An own property, so that copies have it; with one shared getter, because an accessor per object gives each a hidden
  // class that would keep the request alive.
  return Object.defineProperty(ctx, 'signal', SIGNAL)
}

// The entity tags of lists and counts: from the versions of their sources, or else from the content.

/** The inspectors that a response of the route is read from. */
export function familiesOf({ requires, alsoReads = [] }: DiagnosticsRoute): FamilyName[] {
  return [...new Set([...requires.map((need) => CAPABILITIES.keyOf(need) as FamilyName), ...alsoReads])]
}

/** The sources of a route whose versions together are that of its responses; `null` if one has none. */
function versionedSources(
  { route, families }: Pick<RequestedRoute, 'route' | 'families'>,
  inspectors: Present,
): readonly Versioned[] | null {
  const sources = families.flatMap((name) => (inspectors[name] ? [inspectors[name] as Versioned] : []))
  const isVersioned = sources.every(({ version }) => version)
  return !route.unversioned && isVersioned && sources.length > 0 ? sources : null
}

/** The combined version of `sources`; `null` if unknown, or not in time. The same one means the same response. */
function versionWithin(
  deadline: Deadline,
  sources: readonly Versioned[] | null,
  ctx: InspectionContext,
): Awaitable<string | null> {
  if (sources === null) return null
  const versions = sources.map((source) => versionOf(source, ctx))
  // Synchronous versions are not awaited: the deadline would create a signal and a timer.
  if (!versions.some(isPromise)) return joined(versions)
  return Promise.resolve(deadline.race(Promise.all(versions))).then(joined, () => null)
}

/**
 * An error means no version: the request itself reports the error, and versions of other inspectors are still awaited.
 */
function versionOf(source: Versioned, ctx: InspectionContext): unknown {
  try {
    return source.version?.(ctx)
  } catch {
    return null
  }
}

const isPromise = (value: unknown) => typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'

const joined = (versions: readonly unknown[]) =>
  versions.every((version) => typeof version === 'string') ? versions.join(' ') : null

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

/** The name of the inspector that a route reads first. */
function sourceOf({ route }: Pick<RequestedRoute, 'route'>): string | undefined {
  const [need] = route.requires
  return need && CAPABILITIES.inspectorOf(need)
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
  /** The version of the sources, without reading a remote store; `null` if unknown. */
  version(): Awaitable<string | null>
  answer(): Promise<RequestOutcome>
}

/** What the answer to a question needs of its request, and sets. */
export interface AnsweredVisit {
  request: Request
  answer?: RequestOutcome
  /** Whether a part of the response failed: then the version of the sources must not be used as its tag. */
  isPartial: boolean
}

/** Answers a question, or 304 if the client has the answer. @param compared What the tag of the answer is of; `null` for no tag. */
export async function answerTo(
  question: Question,
  compared: string | null,
  route: DiagnosticsRoute,
  visit: AnsweredVisit,
): Promise<HttpReply> {
  if (compared === null) {
    visit.answer = await question.answer()
    return jsonReply(200, visit.answer.encoded.text)
  }
  const named = visit.request.headers.get('if-none-match')
  const version = await question.version()
  const known = version === null ? null : weakTag(compared, version)
  if (known !== null && isNamed(named, known)) return notModified(known)
  visit.answer = await question.answer()
  const { encoded } = visit.answer
  const isVersioned = known !== null && !visit.isPartial && isWhole(visit.answer)
  const etag = isVersioned ? known : weakTag(compared, comparedText(encoded, route.compared))
  return isNamed(named, etag) || isAnyNamed(named) ? notModified(etag) : jsonReply(200, encoded.text, { etag })
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
    const source = sourceOf(asked)
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
      // Records match a silence by the passing of time, without a change of their source.
      version: () =>
        given.filters.silent_for_ms === undefined
          ? versionWithin(deadline, versionedSources(asked, inspectors), ctx)
          : null,
      answer: () => read(asked as never, inspectors, { params, given, deployment, users, deadline }, view),
    }
  }
}
