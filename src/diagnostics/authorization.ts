/** Who may see what: the host's word on each request, and what its answer is made from. */
import type { Deadline } from '../async/deadline.js'
import type { Inspectors, Present } from '../contract/families.js'
import type { Awaitable } from '../contract/page.js'
import type { AdminPrincipal } from '../http/auth.js'
import { ProblemError } from '../http/problem.js'
import { scopeInspectors } from '../views/scope/inspectors.js'
import { parseVisibleUsers, type UserScope } from '../views/scope/seen.js'
import type { DiagnosticsRoute } from './route.js'
import type { Service } from './service-index.js'

/** One request that is known to be well-formed, before any inspector hears of it. */
export interface AccessQuestion<Principal extends AdminPrincipal = AdminPrincipal> {
  /** What the authenticator answered. */
  readonly principal: Principal
  /** The route's path, such as `/connections/{connection_id}`. */
  readonly route: string
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The filters that were given, typed; `limit` and `cursor` are none. */
  readonly filters: Readonly<Record<string, unknown>>
  readonly request: Request
}

/**
 * Who may see what: everything (`true`), nothing (`false`), or some users. Anything else, a throw, and no answer within the deadline
 * are no, and `onError` hears of it. Must not read the body.
 */
export type Authorize<Principal extends AdminPrincipal = AdminPrincipal> = (
  question: AccessQuestion<Principal>,
) => Awaitable<boolean | UserScope>

/** What one answer is made from. */
export interface AccessScope {
  readonly inspectors: Present
  readonly service: Service
  /** Who can be seen, where that is not everybody: a cursor is good for these alone. */
  readonly users?: readonly string[]
}

interface AccessScopeOptions<Principal extends AdminPrincipal> {
  inspectors: Inspectors
  authorize: Authorize<Principal> | undefined
  describe(inspectors: Inspectors, isOpen?: (route: Pick<DiagnosticsRoute, 'scopable'>) => boolean): Service
}

/**
 * @returns what a request is answered from; it throws ProblemError `forbidden` for whoever may not ask, and
 * `not_narrowable` where somebody who may see some users asks for what is of all.
 */
export function createAccessScopes<Principal extends AdminPrincipal>(options: AccessScopeOptions<Principal>) {
  const { authorize, describe } = options
  // The router makes sure that the inspector which a route needs is there.
  const inspectors = options.inspectors as Present
  const whole: AccessScope = { inspectors, service: describe(inspectors) }
  // What can be asked does not depend on who they are.
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
