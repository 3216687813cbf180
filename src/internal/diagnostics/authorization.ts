/** Authorization: the host's decision on each request, and the inspectors that its response may use. */
import type { Deadline } from '../async/deadline.js'
import type { Inspectors, Present } from '../contract/families.js'
import type { Awaitable } from '../contract/page.js'
import type { AdminPrincipal } from '../http/auth.js'
import { ProblemError } from '../http/problem.js'
import { scopeInspectors } from '../views/scope/inspectors.js'
import { parseVisibleUsers, type UserScope } from '../views/scope/seen.js'
import type { DiagnosticsRoute, Service } from './route.js'

/** One valid request, before any inspector is called. */
export interface AccessQuestion<Principal extends AdminPrincipal = AdminPrincipal> {
  /** The principal that the authenticator returned. */
  readonly principal: Principal
  /** The route's path, such as `/connections/{connection_id}`. */
  readonly route: string
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The filters of the request, parsed; without `limit` and `cursor`. */
  readonly filters: Readonly<Record<string, unknown>>
  /** The request. Its body must not be read. */
  readonly request: Request
}

/**
 * Decides what a caller may see: everything (`true`), nothing (`false`), or some users. Any other value, an error, or
 * no answer before the deadline means no, and `onError` is called. Must not read the body.
 */
export type Authorize<Principal extends AdminPrincipal = AdminPrincipal> = (
  question: AccessQuestion<Principal>,
) => Awaitable<boolean | UserScope>

/** The inspectors and users that one response may use. */
export interface AccessScope {
  readonly inspectors: Present
  readonly service: Service
  /** The users that are visible, if not all: a cursor is valid only for the same users. */
  readonly users?: readonly string[]
}

interface AccessScopeOptions<Principal extends AdminPrincipal> {
  inspectors: Inspectors
  authorize: Authorize<Principal> | undefined
  describe(inspectors: Inspectors, isOpen?: (route: Pick<DiagnosticsRoute, 'scopable'>) => boolean): Service
}

/**
 * @returns a function that returns the scope of a request. It throws ProblemError `forbidden` for callers without
 * access, and `not_narrowable` if a caller with access to some users requests data about all users.
 */
export function createAccessScopes<Principal extends AdminPrincipal>(options: AccessScopeOptions<Principal>) {
  const { authorize, describe } = options
  // The router makes sure that the inspector which a route needs is there.
  const inspectors = options.inspectors as Present
  const whole: AccessScope = { inspectors, service: describe(inspectors) }
  // The available routes do not depend on the users.
  const service = authorize && describe(scopeInspectors(inspectors, { user_ids: [] }), isNarrowable)

  async function wordOn(question: AccessQuestion<Principal>, deadline: Deadline): Promise<true | readonly string[]> {
    let word: unknown
    try {
      word = await deadline.race((authorize as Authorize<Principal>)(question))
      if (word === true) return true
      if (word !== false) return parseVisibleUsers(word as UserScope).users
    } catch (cause) {
      throw new ProblemError('forbidden', {}, { cause })
    }
    throw new ProblemError('forbidden')
  }

  async function accessScopeOf(
    route: DiagnosticsRoute,
    question: AccessQuestion<Principal>,
    deadline: Deadline,
  ): Promise<AccessScope> {
    if (service === undefined) return whole
    const users = await wordOn(question, deadline)
    if (users === true) return whole
    if (!service.isAvailable(route.path)) throw new ProblemError('not_narrowable')
    return { inspectors: scopeInspectors(inspectors, { user_ids: users }) as Present, service, users }
  }

  return { whole, accessScopeOf }
}

const isNarrowable = ({ scopable }: Pick<DiagnosticsRoute, 'scopable'>) => scopable === true
