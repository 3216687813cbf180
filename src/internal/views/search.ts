/** The search view: what has a given id in any family, and which users and actions begin with a text. */
import * as z from 'zod'
import { runWithin } from '../async/deadline.js'
import { BrowserWindowAnswer } from '../contract/browser-windows.js'
import { CAPABILITIES, type Capability, SourceName } from '../contract/capabilities.js'
import { ConnectionAnswer } from '../contract/connections.js'
import { ContextAnswer } from '../contract/contexts.js'
import { DeliveryCommandAnswer } from '../contract/delivery.js'
import type { Inspectors, Present } from '../contract/families.js'
import { idField } from '../contract/ids.js'
import { PAGE_MAX, UNINDEXED_ENTRIES } from '../contract/limits.js'
import {
  type Awaitable,
  type InspectionContext,
  type Page,
  type PageQuery,
  scanLimit,
  withScanBudget,
  withSignal,
} from '../contract/page.js'
import { EndedCallAnswer, PendingCallAnswer } from '../contract/rpc.js'
import { SessionRowAnswer } from '../contract/sessions.js'
import { SiteRowAnswer } from '../contract/sites.js'
import { SubscriptionRowAnswer } from '../contract/subscriptions.js'
import { Refusal } from '../refusal.js'
import { listActions } from './actions.js'
import { requestOf } from './findings/finding.js'
import { parseRecords, readPage, type ViewContext, viewForSource } from './reading.js'
import { USER_SOURCES } from './user-observation.js'
import { listUsers } from './users.js'

/** Hits of one kind that a search lists at most. */
const HITS_MAX = 20

/** What a hit is. */
export const HitKind = z
  .enum([
    'user',
    'client',
    'connection',
    'node',
    'context',
    'task',
    'browser_window',
    'action',
    'call',
    'ended_call',
    'stream',
    'command',
    'scope',
    'site',
    'session',
    'subscription',
  ])
  .describe('What a hit is.')
export type HitKind = z.infer<typeof HitKind>

/** One record, or one name, that a search found. */
export const Hit = z
  .object({
    kind: HitKind.describe('Kind of the hit.'),
    id: z.string().describe('The id or the name.'),
    match: z.enum(['exact', 'prefix']).describe('Whether the id equals the text or begins with it.'),
    user_id: idField('user_id').nullable().describe('The user; `null` if there is none, or if there may be several.'),
    route: z.string().describe('The request that shows it, below the prefix.'),
  })
  .describe('One record, or one name, that a search found.')
export type Hit = z.infer<typeof Hit>

/** What a search found. */
export const SearchResult = z
  .object({
    hits: z.array(Hit).describe(`What was found, exact ids first; at most ${HITS_MAX} of each kind.`),
    more: z.array(HitKind).describe('Kinds with more hits than are listed.'),
    cut: z
      .array(SourceName)
      .describe(
        'Sources that were not searched to the end: by a limit, a failure or a timeout. They may hold more hits.',
      ),
  })
  .describe('Records of every family with an id, and users and actions that begin with a text.')
export type SearchResult = z.infer<typeof SearchResult>

/** What one lookup found. */
interface LookupResult {
  hits: Hit[]
  /** Whether it has more hits than these. */
  hasMore?: boolean
  /** Sources that it did not search to the end. */
  cut?: readonly SourceName[]
  hasFailed?: true
}

/** Looks for hits of one kind. */
interface Lookup {
  kind: HitKind
  requires: Capability
  find(inspectors: Present, q: string, view: ViewContext, source: SourceName): Promise<LookupResult>
}

/** A lookup that gets one record by its id. */
function byId<T>(
  kind: HitKind,
  requires: Capability,
  entry: z.ZodType<T>,
  get: (inspectors: Present, id: string, ctx: InspectionContext) => Awaitable<T | null | undefined>,
  path: string,
  ownerOf: (record: T) => string,
): Lookup {
  return {
    kind,
    requires,
    async find(inspectors, q, view, source) {
      const record = await get(inspectors, q, view.ctx)
      if (record === null) return { hits: [] }
      const page = { items: [record], next_cursor: null, has_more: false }
      const records = parseRecords(source, entry, page, view)
      const route = `${path}/${encodeURIComponent(q)}`
      const hits = records.map((one): Hit => ({ kind, id: q, match: 'exact', user_id: ownerOf(one), route }))
      return { hits, cut: records.length === 0 ? [source] : [] }
    },
  }
}

/** A lookup that lists records by a filter, and makes hits of those that have the id. */
function byFilter<T>(
  kind: HitKind,
  requires: Capability,
  entry: z.ZodType<T>,
  list: (
    inspectors: Present,
    id: string,
    page: PageQuery,
    ctx: InspectionContext,
  ) => Awaitable<Page<unknown> | undefined>,
  idOf: (record: T) => string | null,
  hitOf: (record: T, q: string) => Pick<Hit, 'user_id' | 'route'>,
  limit = 1,
  pageLimit = limit + 1,
): Lookup {
  return {
    kind,
    requires,
    async find(inspectors, q, view, source) {
      const page = await readPage<unknown>(
        (query, ctx) => list(inspectors, q, query, ctx) as Awaitable<Page<unknown>>,
        null,
        pageLimit,
        { entries: UNINDEXED_ENTRIES, pages: 1 },
        view,
      )
      const all = parseRecords(source, entry, page, view)
      const records = all.filter((record) => idOf(record) === q)
      const hits = records.slice(0, limit).map((record): Hit => ({ kind, id: q, match: 'exact', ...hitOf(record, q) }))
      const isOver = !page.has_more || records.length >= (limit === 1 ? 1 : limit + 1)
      const isCut = all.length < page.items.length || !isOver
      return { hits, hasMore: limit > 1 && records.length > limit, cut: isCut ? [source] : [] }
    },
  }
}

const shared = (path: string, filter: string) => (_record: unknown, q: string) => ({
  user_id: null,
  route: requestOf(path, { [filter]: q }),
})
const userOf = ({ user_id }: { user_id: string }) => user_id
const ownerOf = ({ owner }: { owner: string }) => owner

const LOOKUPS: readonly Lookup[] = [
  byFilter(
    'client',
    'registry',
    ConnectionAnswer,
    ({ registry }, client_id, page, ctx) => registry.listConnections({ client_id }, page, ctx),
    ({ client_id }) => client_id,
    shared('/connections', 'client_id'),
  ),
  byId(
    'connection',
    'registry',
    ConnectionAnswer,
    ({ registry }, id, ctx) => registry.getConnection(id, ctx),
    '/connections',
    userOf,
  ),
  byFilter(
    'node',
    'registry',
    ConnectionAnswer,
    ({ registry }, node_id, page, ctx) => registry.listConnections({ node_id }, page, ctx),
    ({ node_id }) => node_id,
    shared('/connections', 'node_id'),
  ),
  byId(
    'context',
    'context_registry',
    ContextAnswer,
    ({ contextRegistry }, id, ctx) => contextRegistry.getContext(id, ctx),
    '/contexts',
    userOf,
  ),
  byFilter(
    'task',
    'context_registry',
    ContextAnswer,
    ({ contextRegistry }, task_id, page, ctx) => contextRegistry.listContexts({ task_id }, page, ctx),
    ({ task_id }) => task_id,
    shared('/contexts', 'task_id'),
  ),
  byId(
    'browser_window',
    'browser_window_registry',
    BrowserWindowAnswer,
    ({ browserWindowRegistry }, id, ctx) => browserWindowRegistry.getBrowserWindow(id, ctx),
    '/browser-windows',
    userOf,
  ),
  byId('call', 'rpc', PendingCallAnswer, ({ rpc }, id, ctx) => rpc.getPending(id, ctx), '/rpc/pending', userOf),
  byId('ended_call', 'rpc_ended', EndedCallAnswer, ({ rpc }, id, ctx) => rpc.getEnded?.(id, ctx), '/rpc/ended', userOf),
  {
    kind: 'stream',
    requires: 'history',
    async find({ history }, q, { ctx }) {
      const { items } = await history.readMessages({ stream: q, limit: 1 }, ctx)
      const route = requestOf('/history/messages', { stream: q })
      return { hits: items.length === 0 ? [] : [{ kind: 'stream', id: q, match: 'exact', user_id: null, route }] }
    },
  },
  byFilter(
    'command',
    'delivery_commands',
    DeliveryCommandAnswer,
    ({ delivery }, command_id, page, ctx) => delivery.listCommands?.({ command_id }, page, ctx),
    ({ command_id }) => command_id,
    ({ user_id, client_id, command_id }) => ({
      user_id,
      route: requestOf('/delivery/commands', {
        ...(user_id !== null && { user_id }),
        ...(client_id !== null && { client_id }),
        command_id,
      }),
    }),
    HITS_MAX,
  ),
  byFilter(
    'scope',
    'delivery_commands',
    DeliveryCommandAnswer,
    ({ delivery }, scope_id, page, ctx) => delivery.listCommands?.({ scope_id }, page, ctx),
    ({ admission }) => admission?.scope_id ?? null,
    shared('/delivery/commands', 'scope_id'),
  ),
  byId('site', 'sites', SiteRowAnswer, ({ sites }, id, ctx) => sites.getSite(id, ctx), '/sites', ownerOf),
  byId(
    'session',
    'sessions',
    SessionRowAnswer,
    ({ sessions }, id, ctx) => sessions.getSession(id, ctx),
    '/sessions',
    ownerOf,
  ),
  byFilter(
    'subscription',
    'subscriptions',
    SubscriptionRowAnswer,
    ({ subscriptions }, _id, page, ctx) => subscriptions.listSubscriptions({}, page, ctx),
    ({ subscription_id }) => subscription_id,
    ({ user_id, session_id }) => ({ user_id, route: requestOf('/subscriptions', { session_id, user_id }) }),
    1,
    PAGE_MAX,
  ),
]

const NAME_PAGE = { limit: HITS_MAX + 1, cursor: null }

const matchOf = (id: string, q: string) => (id === q ? 'exact' : 'prefix')

/** Users whose ids begin with the text. */
async function findUsers(inspectors: Present, q: string, view: ViewContext): Promise<LookupResult> {
  const { items, completeness } = await listUsers(inspectors, { ...NAME_PAGE, prefix: q }, view)
  const hits = items.slice(0, HITS_MAX).map(({ user_id }): Hit => {
    const route = `/users/${encodeURIComponent(user_id)}/summary`
    return { kind: 'user', id: user_id, match: matchOf(user_id, q), user_id, route }
  })
  return { hits, hasMore: items.length > HITS_MAX, cut: completeness.truncated_sources }
}

/** Actions that connected clients offer and whose names begin with the text. */
async function findActions({ registry }: Present, q: string, view: ViewContext): Promise<LookupResult> {
  const within = { ...view, ctx: withScanBudget(view.ctx, Math.min(scanLimit(view.ctx), UNINDEXED_ENTRIES)) }
  const { items, completeness } = await listActions(registry, { name_prefix: q }, NAME_PAGE, within)
  const hits = items.slice(0, HITS_MAX).map(({ name }): Hit => {
    const route = requestOf('/actions', { name_prefix: name })
    return { kind: 'action', id: name, match: matchOf(name, q), user_id: null, route }
  })
  return { hits, hasMore: items.length > HITS_MAX, cut: completeness.truncated_sources }
}

/** The inspectors of which a search needs any. */
export const SEARCH_NEEDS: readonly Capability[] = [
  ...new Set([...USER_SOURCES, ...LOOKUPS.map(({ requires }) => CAPABILITIES.inspectorOf(requires) as Capability)]),
]

/**
 * Looks for `q` in every family at the same time: as an exact id, and as the beginning of user ids and action names. One
 * source that fails does not keep what the others find; it is named in `cut`.
 *
 * @param deadlineMs How long the whole request may take.
 * @throws Refusal `unavailable` when every source failed.
 */
export async function search(
  inspectors: Inspectors,
  q: string,
  deadlineMs: number,
  view: ViewContext,
): Promise<SearchResult> {
  // A source that hangs must not keep what the others find.
  const ms = deadlineMs / 2
  const present = inspectors as Present
  const offers = (capability: Capability) => CAPABILITIES.offers(inspectors, capability)
  const lookups: { kind: HitKind; source: SourceName; find(view: ViewContext): Promise<LookupResult> }[] = []
  const users = USER_SOURCES.find(offers)
  if (users) lookups.push({ kind: 'user', source: sourceOf(users), find: (given) => findUsers(present, q, given) })
  if (offers('registry'))
    lookups.push({ kind: 'action', source: 'registry', find: (given) => findActions(present, q, given) })
  for (const { kind, requires, find } of LOOKUPS) {
    const source = sourceOf(requires)
    if (offers(requires)) lookups.push({ kind, source, find: (given) => find(present, q, given, source) })
  }
  const done = await Promise.all(lookups.map(({ source, find }) => look(source, ms, find, view)))
  // Nothing was read, so nothing is known: no hits would say that nothing has this id.
  if (done.length > 0 && done.every(({ hasFailed }) => hasFailed)) throw new Refusal('unavailable')
  const cut = done.flatMap(({ cut = [] }) => cut)
  const hits = done.flatMap((found) => found.hits)
  const placeOf = ({ kind, match }: Hit) => (match === 'exact' ? 0 : 100) + HitKind.options.indexOf(kind)
  return {
    hits: hits.sort((a, b) => placeOf(a) - placeOf(b)),
    more: lookups.flatMap(({ kind }, i) => (done[i]?.hasMore ? [kind] : [])),
    cut: SourceName.options.filter((source) => cut.includes(source)),
  }
}

const sourceOf = (capability: Capability) => CAPABILITIES.inspectorOf(capability) as SourceName

/** Runs one lookup within its time limit. If it fails, `onError` is called and its source is listed in `cut`. */
async function look(
  source: SourceName,
  ms: number,
  find: (view: ViewContext) => Promise<LookupResult>,
  asked: ViewContext,
): Promise<LookupResult> {
  const view = viewForSource(asked, source)
  const { signal } = view.ctx
  try {
    const run = (within: AbortSignal) => find({ ...view, ctx: withSignal(view.ctx, within) })
    return await runWithin(run, { ms, late: () => new Refusal('unavailable'), signal })
  } catch (error) {
    view.onError(source, error)
    return { hits: [], cut: [source], hasFailed: true }
  }
}
