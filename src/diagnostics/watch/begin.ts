/**
 * Turns a request into a watch: its views, its access record, and how its caller is checked again when access may have
 * changed.
 */
import { Deadline } from '../../async/deadline.js'
import type { Awaitable, InspectionLimits } from '../../contract/page.js'
import { isWhole } from '../../http/etag.js'
import { readQuery } from '../../http/read.js'
import type { HttpReply } from '../../http/respond.js'
import type { AccessScope } from '../authorization.js'
import type { ErrorPlace } from '../hooks.js'
import {
  createInspectionContext,
  type createQuestions,
  type PlacedRoute,
  type Question,
  type RequestedRoute,
  sourceOf,
  versionedSources,
  versionWithin,
} from '../question.js'
import { createWatches, type FoundView, type OpenView, type Watcher } from './watches.js'

// Reads a view for its watchers: each time as a request of its own, with its own deadline and limits.

/** A request without a client that can disconnect. */
const NO_CLIENT = { signal: new AbortController().signal }

interface OpenViewOptions<P> {
  question: ReturnType<typeof createQuestions>
  deadlineMs: number
  limits: InspectionLimits
  now(): number
  accessScopeFor(
    principal: P,
    asked: RequestedRoute,
    matched: { params: Record<string, string>; filters: Readonly<Record<string, unknown>> },
    visit: { request: Request; deadline: Deadline },
  ): Awaitable<AccessScope>
  reportError(error: unknown, place: ErrorPlace): void
}

/** @returns a function that opens a view for a watcher. It throws if the watcher has no access. */
function createOpenView<P>(options: OpenViewOptions<P>) {
  const { question, deadlineMs, now, accessScopeFor, reportError } = options
  const limits = Object.freeze({ examined: options.limits.examined })
  return async (
    { route: asked, params, given }: FoundView<RequestedRoute>,
    { request, principal }: Watcher<P>,
  ): Promise<OpenView> => {
    const { route } = asked
    const opening = new Deadline(deadlineMs, request)
    let accessScope: AccessScope
    try {
      accessScope = await accessScopeFor(
        principal,
        asked,
        { params, filters: given.filters },
        { request, deadline: opening },
      )
    } finally {
      opening.clear()
    }
    const place = (source?: string) => ({ route: route.path, ...(source === undefined ? {} : { source }) })
    const put = (deadline: Deadline, failed = () => {}): Question =>
      question(asked, { params, given, accessScope, deadline }, new Set(), (error, source) => {
        failed()
        reportError(error, place(source))
      })
    // Found once: in most seconds a watch does nothing but compare their versions.
    const sources = versionedSources(asked, accessScope.inspectors, true)
    const reportSkipped = (error: unknown) => reportError(error, place(sourceOf(asked)))
    return {
      scope: JSON.stringify(accessScope.users ?? null),
      compared: route.compared,
      async read() {
        const deadline = new Deadline(deadlineMs, NO_CLIENT)
        let hasFailed = false
        const failed = () => {
          hasFailed = true
        }
        try {
          const answer = await put(deadline, failed).answer()
          return { encoded: answer.encoded, isWhole: !hasFailed && isWhole(answer) }
        } finally {
          deadline.clear()
        }
      },
      version() {
        const deadline = new Deadline(deadlineMs, NO_CLIENT)
        const ctx = createInspectionContext(deadline, limits, reportSkipped)
        const version = versionWithin(deadline, sources, ctx)
        if (version instanceof Promise) return version.finally(() => deadline.clear())
        deadline.clear()
        return version
      },
      now,
    }
  }
}

/** The state of one request, for the hooks. */
interface Visited {
  request: Request
  deadline: Deadline
  filters: Readonly<Record<string, unknown>>
}

interface BeginOptions<P, Visit> extends OpenViewOptions<P> {
  routes: readonly PlacedRoute[]
  /** Throws if no inspector can answer. */
  checkCapability(needs: RequestedRoute['route']['needs']): void
  /** Returns the caller. Throws if authentication fails. */
  authenticate(visit: Visit): Promise<P>
}

/** @returns a function that begins a watch. It throws if the request is refused. */
export function createBeginWatch<P extends { name: string }, Visit extends Visited>(options: BeginOptions<P, Visit>) {
  const { routes, checkCapability, authenticate, deadlineMs } = options
  const watches = createWatches<PlacedRoute, P>({
    routes,
    givenOf(asked, search) {
      checkCapability(asked.route.needs)
      return readQuery(asked, search)
    },
    open: createOpenView(options),
  })

  return async (principal: P, search: string, visit: Visit): Promise<HttpReply> => {
    const { request } = visit
    const found = await watches.viewsIn(search)
    // Copies: changes by the host must not affect what is watched.
    const view = found.map(({ route: { path }, params, given: { filters } }) => ({
      route: path,
      params: { ...params },
      filters: { ...filters },
    }))
    visit.filters = { view }
    return watches.begin(found, { principal, request }, async () => {
      const deadline = new Deadline(deadlineMs, request)
      try {
        return await authenticate({ ...visit, deadline })
      } finally {
        deadline.clear()
      }
    })
  }
}
