/** Whether an action may be invoked now: the session, the rights and the four conditions, in their order. */
import type {
  Principal,
  Session,
  SessionPolicy,
  SessionRegistry,
  SessionRight,
} from '../../internal/contract/sessions.js'
import { isGenericActionName, type Site, type SiteRegistry } from '../../internal/contract/sites.js'
import { Refusal, type RefusalCode } from '../../internal/refusal.js'

export interface CheckActionDeps {
  sites: Pick<SiteRegistry, 'get'>
  sessions: Pick<SessionRegistry, 'get'>
  /** Who may view and invoke: `createSessionPolicy`, or your own. */
  policy: SessionPolicy
  /** Called with errors thrown by the policy. */
  onError?: ((error: unknown) => void) | null | undefined
}

/**
 * Evaluates the policy.
 *
 * @throws Refusal `unavailable` if the policy fails: neither a permission nor a denial.
 */
async function isAllowed(
  { policy, onError }: Pick<CheckActionDeps, 'policy' | 'onError'>,
  question: { viewer: Principal; session: Session; right: SessionRight },
): Promise<boolean> {
  try {
    return (await policy.check(question)) === true
  } catch (error) {
    if (error instanceof Refusal && error.code === 'unavailable') throw error
    onError?.(error)
    throw new Refusal('unavailable', 'the policy failed', { cause: error })
  }
}

const EPOCH = new Date(0).toISOString()
const NO_SESSION: Omit<Session, 'session_id'> = Object.freeze({
  site_id: '',
  owner: '',
  state: 'closed',
  connector: null,
  opened_at: EPOCH,
  expires_at: null,
  updated_at: EPOCH,
  close_reason: null,
})

/**
 * Returns the session if the viewer may see it.
 *
 * @throws Refusal `session_not_found`, both for a missing session and for another viewer's.
 */
export async function findSession(
  { sessions, ...judge }: Pick<CheckActionDeps, 'sessions' | 'policy' | 'onError'>,
  sessionId: string,
  viewer: Principal,
): Promise<Session> {
  const found = await sessions.get(sessionId)
  // The policy is called for missing sessions too, so that timing does not reveal which ids exist.
  const session = found ?? { ...NO_SESSION, session_id: sessionId }
  const mayView = await isAllowed(judge, { viewer, session, right: 'view' })
  if (!found || !mayView) throw new Refusal('session_not_found')
  return found
}

/** The first of the four conditions that does not hold. */
function checkAction(
  session: Session | null | undefined,
  site: Site | null | undefined,
  action: string,
): RefusalCode | undefined {
  if (session?.state !== 'active') return 'session_not_active'
  if (!site || site.owner !== session.owner || site.mode !== 'cooperative') return 'site_not_cooperative'
  if (site.capability_profile.action_invocation !== true) return 'action_invocation_disabled'
  // A custom registry may contain a generic action name, which would allow any action; it is refused.
  if (!site.action_names.includes(action) || isGenericActionName(action)) return 'action_not_allowed'
  return undefined
}

/** A session and site for which an action is allowed. */
export interface Admitted {
  session: Session
  connector: { user_id: string; client_id: string }
}

interface ActionRequest {
  session: Session
  viewer: Principal
  action: string
}

/**
 * Evaluates the four conditions with fresh reads. The session is read last and nothing is awaited after it: a caller
 * that sends immediately sends into a session that was active at that moment.
 *
 * @throws Refusal with the code of the first condition that does not hold.
 */
export async function admitAction(
  { sites, sessions, ...judge }: CheckActionDeps,
  request: ActionRequest,
): Promise<Admitted> {
  const { session, viewer, action } = request
  const mayInvoke = await isAllowed(judge, { viewer, session, right: 'invoke' })
  const site = await sites.get(session.site_id)
  const fresh = await sessions.get(session.session_id)
  const refused = checkAction(fresh, site, action)
  if (refused) throw new Refusal(refused)
  if (!mayInvoke) throw new Refusal('forbidden')
  const { connector, owner } = fresh as Session
  if (connector === null || connector.user_id !== owner)
    throw new Refusal('connector_unavailable', 'the session has no connector of its owner')
  return { session: fresh as Session, connector }
}

/**
 * Refuses a viewer without the right to invoke before the body is read, so that unauthorised requests stay cheap.
 *
 * @throws Refusal with the code of the first condition that does not hold; the right to invoke is checked last.
 */
export async function requireInvoker(deps: CheckActionDeps, request: ActionRequest): Promise<void> {
  const { viewer, session } = request
  if (!(await isAllowed(deps, { viewer, session, right: 'invoke' }))) await admitAction(deps, request)
}
