/** Sessions: a viewer-facing relationship to a site, and who may take part in it. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { answerOf } from './answer.js'
import type { Family } from './family.js'
import { filterBy, Id, idField, randomUuid, SegmentId, Timestamp } from './ids.js'
import { checkFields, count, defineOptions, func, type Input, inputObject, share, withMethods } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'
import type { SiteKey, SiteRegistry } from './sites.js'

/** Only `active` invokes; `active` and `suspended` are viewed; `closed` and `expired` are final. */
export const SessionState = z
  .enum(['pending', 'active', 'suspended', 'closed', 'expired'])
  .describe('Only `active` invokes; `active` and `suspended` are viewed; `closed` and `expired` are final.')
export type SessionState = z.infer<typeof SessionState>

/** Which states each move starts from; any other move is refused. `closed` and `expired` are in none: they are final. */
export const SESSION_MOVES: Record<'active' | 'suspended' | 'closed', readonly SessionState[]> = {
  active: ['pending', 'suspended'],
  suspended: ['active'],
  closed: ['pending', 'active', 'suspended'],
}

/** A session is shared with people one by one; a crowd is a policy of the host's own. */
export const SHARES_MAX = 1_000
/** How long an ended session is retained, in milliseconds. */
export const FINAL_KEPT_MS = 3_600_000

/** The client that handles the actions of a session. */
export const Connector = inputObject({
  /** Id of the user. */
  user_id: Id,
  /** Id of the client. */
  client_id: SegmentId,
})
export type Connector = z.infer<typeof Connector>

/** A session of a site. */
export const Session = z
  .object({
    session_id: idField('session_id'),
    site_id: idField('site_id'),
    owner: z.string().describe('The owner of the site, and the user of the connector.'),
    state: SessionState.describe('Current state.'),
    connector: z
      .object({ user_id: idField('user_id'), client_id: idField('client_id') })
      .nullable()
      .describe('The client that handles its actions; `null` where it has none.'),
    opened_at: Timestamp.describe('When it was opened.'),
    expires_at: Timestamp.nullable().describe('When it expires; `null` if it does not.'),
    updated_at: Timestamp.describe('When it came into its state.'),
    close_reason: z.string().nullable().describe('Why it was closed, a low-cardinality name.'),
  })
  .describe('One viewer-facing relationship to a site.')
export type Session = z.infer<typeof Session>

/** What a viewer may do in a session. `invoke` includes `view`. */
export const SessionRight = z.enum(['view', 'invoke'])
export type SessionRight = z.infer<typeof SessionRight>

/** A session in `/sessions`, with facts about its connector and viewers. `null` means unknown. */
export const SessionRow = Session.extend({
  connector_connected: z
    .boolean()
    .nullable()
    .describe('Whether its connector holds a connection now. `null` also where the session has no connector.'),
  shares: z.int().min(0).nullable().describe('Number of viewers that it is shared with now, without its owner.'),
  next_share_expires_at: Timestamp.nullable().describe('When the first of these shares expires; `null` if none does.'),
  viewers: z.int().min(0).nullable().describe('Open viewer streams on all nodes.'),
}).describe('A session, with facts about its connector and viewers. `null` means unknown.')
export type SessionRow = z.infer<typeof SessionRow>

/** `SessionRow` as routes answer it. */
export const SessionRowAnswer = answerOf(SessionRow, ['session_id', 'site_id', 'owner', 'state'], {
  connector: Session.shape.connector.unwrap(),
})
export type SessionRowAnswer = z.output<typeof SessionRowAnswer>
/** `SessionRow` as an inspector returns it: a field that is absent is not known. */
export type SessionRowInput = z.input<typeof SessionRowAnswer>

/** Filters of `/sessions`. */
export const SessionFilter = z.object({
  owner: Id.optional().describe('Only records owned by this user.'),
  site_id: filterBy('site_id'),
  state: SessionState.optional().describe('Only in this state.'),
})
export type SessionFilter = z.infer<typeof SessionFilter>

/**
 * Reads a session registry. `connector_connected` and `viewers` may be `null`: the router reads them from the
 * inspectors of connections and subscriptions.
 */
export interface SessionInspector extends Pingable, Versioned {
  /** Lists sessions under `filter`, one page at a time. */
  listSessions(filter: SessionFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<SessionRowInput>>
  /** Returns a session, or `null` if it is unknown. */
  getSession(sessionId: string, ctx: InspectionContext): Awaitable<SessionRowInput | null>
  /**
   * Returns the number of open sessions of each site (at most 500), of its owner only; in their order, `null` for
   * unknown.
   */
  countSessions?(sites: readonly SiteKey[], ctx: InspectionContext): Awaitable<readonly (number | null)[]>
}

/** A session as it is opened. */
export const OpenSessionInput = inputObject({
  /** Id of the site. */
  site_id: SegmentId,
  /** The user that owns the site and the connector. */
  owner: Id,
  /** The client that handles the actions of the session. @default null */
  connector: Connector.nullable().default(null),
  /** Time until the session expires, in ms; at most a year. @default it does not expire */
  ttl_ms: z.int().min(1).max(31_536_000_000).optional(),
})
export type OpenSessionInput = z.input<typeof OpenSessionInput>

/**
 * Checks with `sites`, if given, that the session's site, owner and connector belong to one user.
 *
 * @throws Refusal `unknown_site`, `owner_mismatch`.
 */
export async function requireOneOwner(
  { site_id, owner, connector }: z.output<typeof OpenSessionInput>,
  sites: Pick<SiteRegistry, 'get'> | undefined,
): Promise<void> {
  if (connector && connector.user_id !== owner) throw new Refusal('owner_mismatch')
  if (!sites) return
  const site = await sites.get(site_id)
  if (site === null) throw new Refusal('unknown_site')
  if (site.owner !== owner) throw new Refusal('owner_mismatch')
}

/** The rights of one viewer in one session, besides the owner's. */
export const SessionShare = inputObject({
  /** Id of the user. */
  user_id: Id,
  /** Rights of the user. `invoke` includes `view`. */
  rights: z.array(SessionRight).min(1).max(2),
  /** When the share expires, in ISO 8601. @default null: with the session */
  expires_at: Timestamp.nullable().default(null),
})
export type SessionShare = z.output<typeof SessionShare>

/** Returns the user id of a viewer, which `unshare` takes as an object or as a string. @throws Refusal `invalid_input` */
export function viewerId(viewer: { user_id: string } | string): string {
  if (typeof viewer === 'string') return viewer
  checkFields(viewer, ['user_id'], 'viewer.')
  return viewer.user_id
}

/** Where sessions are kept. Whatever only reads needs `get` alone; the reference policy also needs `getShare`. */
export interface SessionRegistry {
  /** Returns the session. Once `expires_at` has passed it is `expired`. */
  get(sessionId: string): Promise<Session | null>
  /**
   * A new session, `pending`.
   *
   * @throws Refusal `invalid_input`, `unknown_site`, `owner_mismatch` (the site's owner, the session's and the
   * connector's user must be one), `capacity_exceeded`.
   */
  open(input: OpenSessionInput): Promise<Session>
  /** From `pending` or `suspended`. @throws Refusal `session_not_found`, `invalid_transition`. */
  activate(sessionId: string): Promise<Session>
  /** From `active`. @throws Refusal `session_not_found`, `invalid_transition`. */
  suspend(sessionId: string): Promise<Session>
  /** From any state that is not final. @throws Refusal `session_not_found`, `invalid_transition`. */
  close(sessionId: string, reason?: string): Promise<Session>
  /**
   * Grants rights in a session that has not ended, replacing the user's previous ones. @throws Refusal
   * `session_not_found`, `invalid_transition`, `invalid_input`, `capacity_exceeded`.
   */
  share(sessionId: string, share: z.input<typeof SessionShare>): Promise<SessionShare>
  /** Revokes a share. @returns whether the user had an unexpired share. */
  unshare(sessionId: string, viewer: { user_id: string } | string): Promise<boolean>
  /** Returns the current share of a viewer; `null` if it has expired. */
  getShare(sessionId: string, userId: string): Promise<SessionShare | null>
  /** Calls `changed` after each change of the session or its shares. Passing time is not a change. @returns a function that ends it. */
  watch?(sessionId: string, changed: () => void): () => void
}

/** A person or program that was authenticated at the relay. */
export interface Principal {
  /** Id of the user. */
  user_id: string
  /**
   * Distinguishes principals of one user, e.g. a token or a device. Principals with the same user and key share the
   * permission of their live streams. Without it the policy gets the user id only.
   */
  key?: string
}

/**
 * Decides who may view and invoke. Called afresh each time; an error is neither a yes nor a no: the caller gets
 * `unavailable`.
 */
export interface SessionPolicy {
  /** Returns whether the viewer has this right in the session. */
  check(question: { viewer: Principal; session: Session; right: SessionRight }): Awaitable<boolean>
}

/** What both registries of sessions take. In a shared store each bound is that of one shard. */
export const SessionOptions = defineOptions({
  /** Where `open` looks up the site and its owner. Without it the given owner is trusted. */
  sites: withMethods<Pick<SiteRegistry, 'get'>>('get').optional(),
  /** Maximum open sessions, and as many ended ones. @default 10000 */
  maxSessions: count(10_000),
  /** Most sessions of one owner that have not ended. @default a tenth of `maxSessions`, at least 2 */
  maxSessionsPerUser: share('maxSessions'),
  /** Makes session ids; they are capabilities to nothing, but should not be guessable. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
})
export interface SessionOptions extends Input<typeof SessionOptions> {}

/** Sessions, for the table of families. */
export const SESSION_FAMILY = {
  facility: 'sessions',
  capability: 'sessions',
  isListed: true,
  methods: { listSessions: true, getSession: true },
  operations: {},
  components: { SessionRow: SessionRowAnswer, SessionState } as Family['components'],
} as const satisfies Family<SessionInspector>
