/** What others know of sites and sessions: how many sessions a site has, whether a session's connector is there. */

import type * as z from 'zod'
import { raceAbort } from '../async/abort.js'
import { BadRecord, readRecord } from '../contract/bad-record.js'
import { Completeness, type SourceName } from '../contract/capabilities.js'
import type { RegistryInspector } from '../contract/connections.js'
import { compareIds } from '../contract/ids.js'
import { type Awaitable, type InspectionContext, type PageQuery, pageSchema } from '../contract/page.js'
import { type Connector, type SessionInspector, SessionRowAnswer, type SessionRowInput } from '../contract/sessions.js'
import { SiteRowAnswer, type SiteRowInput } from '../contract/sites.js'
import {
  type SubscriptionFilter,
  type SubscriptionInspector,
  SubscriptionRowAnswer,
} from '../contract/subscriptions.js'
import { Refusal } from '../refusal.js'
import { answerFrom, type ViewContext, viewForSource, walkEntries } from './reading.js'

/** Returns a value for each of `keys`, in the same order; `null` for unknown. */
type FetchAll<Key, Answer> = (keys: readonly Key[], ctx: InspectionContext) => Awaitable<readonly (Answer | null)[]>

/**
 * Reads the value of each of `keys` in one call. Returns no values if `source` is missing. If it fails, `onError` is
 * called and the values are unknown: the record itself can still be returned.
 */
async function answersOf<Key, Answer>(
  source: SourceName,
  keys: readonly Key[],
  fetchAll: FetchAll<Key, Answer> | undefined,
  view: ViewContext,
): Promise<ReadonlyMap<Key, Answer>> {
  const answers = new Map<Key, Answer>()
  if (!fetchAll || keys.length === 0) return answers
  const { signal } = view.ctx
  try {
    const found = await raceAbort(fetchAll(keys, viewForSource(view, source).ctx), signal)
    for (const [i, key] of keys.entries()) {
      const answer = found[i] ?? null
      if (answer !== null) answers.set(key, answer)
    }
  } catch (error) {
    if (signal.aborted) throw error
    view.onError(source, error)
  }
  return answers
}

/** The valid records among `items`. Invalid ones are left out when the response is encoded. */
const recordsIn = <T>(schema: Parameters<typeof readRecord<T>>[0], items: readonly unknown[]) =>
  items.map((item, i) => readRecord(schema, item, i))

/** Adds the number of sessions to `sites` that lack it. */
export async function withSessions(
  sites: readonly SiteRowInput[],
  sessions: SessionInspector | undefined,
  view: ViewContext,
): Promise<SiteRowInput[]> {
  const read = recordsIn(SiteRowAnswer, sites)
  const asked = read.flatMap((one) => (one instanceof BadRecord || one.data.sessions !== null ? [] : one.data))
  const counts = await answersOf('sessions', asked, sessions?.countSessions?.bind(sessions), view)
  return read.map((one, i) => {
    if (one instanceof BadRecord) return sites[i] as SiteRowInput
    return { ...one.data, sessions: one.data.sessions ?? counts.get(one.data) ?? null }
  })
}

/** The inspectors that know more of a session than its registry. */
export interface SessionSources {
  registry?: RegistryInspector | undefined
  subscriptions?: SubscriptionInspector | undefined
}

/** Adds the status of connectors and the number of viewers to `sessions` that lack them. */
export async function withLife(
  sessions: readonly SessionRowInput[],
  { registry, subscriptions }: SessionSources,
  view: ViewContext,
): Promise<SessionRowInput[]> {
  const read = recordsIn(SessionRowAnswer, sessions)
  const rows = read.flatMap((one) => (one instanceof BadRecord ? [] : one.data))
  const connectors = rows.flatMap(({ connector, connector_connected }) =>
    connector && connector_connected === null ? connector : [],
  )
  const areConnected: FetchAll<Connector, boolean> | undefined =
    registry?.currentInstances &&
    (async (clients, ctx) => ((await registry.currentInstances?.(clients, ctx)) ?? []).map((held) => held !== null))
  const watched = rows.flatMap(({ session_id, viewers }) => (viewers === null ? session_id : []))
  const [connected, viewersOf] = await Promise.all([
    answersOf('registry', connectors, areConnected, view),
    answersOf('subscriptions', watched, subscriptions?.countViewers?.bind(subscriptions), view),
  ])
  return read.map((one, i) => {
    if (one instanceof BadRecord) return sessions[i] as SessionRowInput
    const { session_id, connector, connector_connected, viewers } = one.data
    const known = connector && connected.get(connector)
    return {
      ...one.data,
      connector_connected: connector_connected ?? known ?? null,
      viewers: viewers ?? viewersOf.get(session_id) ?? null,
    }
  })
}

// The viewer streams that are furthest behind at this moment. There is no next page.

/** A page of viewer streams. */
export const SubscriptionPage = pageSchema(SubscriptionRowAnswer)
  .extend({
    completeness: Completeness.nullable().describe(
      'With `order=slowest`, how many streams were compared: not complete if there are more streams than are shown, or than were read. `null` otherwise.',
    ),
  })
  .describe('One page of viewer streams.')
export type SubscriptionPage = z.infer<typeof SubscriptionPage>

/** After every timestamp. */
const LATEST = '\uffff'

/** Most pending first, then most lost, then oldest; a value that is not known comes last. */
function bySlowness(a: SubscriptionRowAnswer, b: SubscriptionRowAnswer): number {
  if (a.pending !== b.pending) return (b.pending ?? -1) - (a.pending ?? -1)
  if (a.dropped !== b.dropped) return (b.dropped ?? -1) - (a.dropped ?? -1)
  if (a.opened_at !== b.opened_at) return (a.opened_at ?? LATEST) < (b.opened_at ?? LATEST) ? -1 : 1
  return compareIds(a.subscription_id, b.subscription_id)
}

/**
 * Lists the slowest streams under `filter`, at most one page, among those that one request may read.
 *
 * @throws Refusal `invalid_cursor` for any cursor: the order changes between pages.
 */
export async function listSlowest(
  subscriptions: SubscriptionInspector,
  filter: SubscriptionFilter,
  { limit, cursor }: PageQuery,
  view: ViewContext,
): Promise<SubscriptionPage> {
  if (cursor !== null) throw new Refusal('invalid_cursor')
  const list = (page: PageQuery, ctx: InspectionContext) => subscriptions.listSubscriptions(filter, page, ctx)
  const none: SubscriptionRowAnswer[] = []
  const reading = await walkEntries(
    'subscriptions',
    { entry: SubscriptionRowAnswer, id: 'subscription_id', list },
    view,
    none,
    (all, rows) => {
      for (const row of rows) all.push(row)
    },
  )
  const { value, completeness } = answerFrom(reading, view, (all) => all.length > limit)
  return { items: value.sort(bySlowness).slice(0, limit), next_cursor: null, has_more: false, completeness }
}
