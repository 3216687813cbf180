/**
 * Turns a request into a watch: its views, its access record, and how its caller is checked again when access may have
 * changed.
 */
import { Deadline } from '../../async/deadline.js'
import { readQuery } from '../../http/read.js'
import type { HttpReply } from '../../http/respond.js'
import type { PlacedRoute, RequestedRoute } from '../question.js'
import { createOpenView, type OpenViewOptions } from './view.js'
import { createWatches } from './watches.js'

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
