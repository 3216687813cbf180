/** Contract suites and fakes of sites, their sessions and their viewers. */

import {
  SessionFilter,
  type SessionInspector,
  SessionRowAnswer,
  type SessionRowInput,
} from '../internal/contract/sessions.js'
import {
  SiteFilter,
  type SiteInspector,
  type SiteKey,
  SiteRowAnswer,
  type SiteRowInput,
} from '../internal/contract/sites.js'
import {
  SubscriptionFilter,
  type SubscriptionInspector,
  SubscriptionRowAnswer,
  type SubscriptionRowInput,
} from '../internal/contract/subscriptions.js'
import { answering, type Known } from './answering.js'
import {
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import { listCases, type MakeInspector, UNKNOWN_ID, walk } from './lists.js'

/** Returns the contract suite of a site inspector. `make` creates one with the same sites each time. */
export function siteContract(given: MakeInspector<SiteInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<SiteInspector>, SiteRowAnswer>(make, {
      name: 'listSites',
      list: (sites, filter) => (page, ctx) => sites.listSites(filter, page, ctx),
      item: SiteRowAnswer,
      id: 'site_id',
      filters: SiteFilter.keyof().options,
      get: (sites, id, ctx) => sites.getSite(id, ctx),
    }),
    {
      name: 'listSites returns the time and the position of the last event together, or neither',
      run: () => checkLife(make),
    },
  ])
}

async function checkLife(make: MakeInspector<Known<SiteInspector>>): Promise<void> {
  const sites = await make()
  if (!sites) return notTested('listSites is not implemented')
  for (const row of await walk<SiteRowAnswer>((page, ctx) => sites.listSites({}, page, ctx), 100, 'listSites'))
    check(
      (row.last_event_at === null) === (row.last_position === null),
      `${row.site_id} has a last event without its position, or the reverse`,
    )
}

/** Data of the fake site inspector. */
export interface SiteWorld {
  /** Sites. */
  sites?: Partly<SiteRowInput>[]
}

const toSite: Make<SiteRowInput> = (given, place) =>
  fill(
    {
      site_id: `site-${place}`,
      owner: 'user-1',
      mode: 'cooperative',
      title: null,
      event_names: [],
      action_names: [],
      capability_profile: { action_invocation: false },
      created_at: FAKE_TIME,
      updated_at: FAKE_TIME,
      sessions: null,
      last_event_at: null,
      last_position: null,
    },
    given,
  )

export function fakeSites(world: SiteWorld): SiteInspector | undefined {
  if (!world.sites) return undefined
  return {
    listSites: (filter, page) => fakePage(toSite, world.sites, filter, page),
    getSite: (site_id) => find(toSite, world.sites, { site_id }),
  }
}

// Contract suite of the session inspector.

/** Returns the contract suite of a session inspector. `make` creates one with the same sessions each time. */
export function sessionContract(given: MakeInspector<SessionInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<SessionInspector>, SessionRowAnswer>(make, {
      name: 'listSessions',
      ordered: true,
      list: (sessions, filter) => (page, ctx) => sessions.listSessions(filter, page, ctx),
      item: SessionRowAnswer,
      id: 'session_id',
      filters: SessionFilter.keyof().options,
      get: (sessions, id, ctx) => sessions.getSession(id, ctx),
    }),
    {
      name: 'countSessions counts the sessions of each site and owner that have not ended',
      run: () => checkCounts(make),
    },
  ])
}

const isOpen = ({ state }: SessionRowAnswer) => state !== 'closed' && state !== 'expired'

async function checkCounts(make: MakeInspector<Known<SessionInspector>>): Promise<void> {
  const sessions = await make()
  if (!sessions?.countSessions) return notTested('countSessions is not implemented')
  const rows = await walk<SessionRowAnswer>((page, ctx) => sessions.listSessions({}, page, ctx), 100, 'listSessions')
  const sites = new Map<string, SiteKey>()
  for (const { site_id, owner } of rows) sites.set(`${owner}\n${site_id}`, { site_id, owner })
  const asked: SiteKey[] = [...sites.values()].slice(0, 100)
  for (const { site_id, owner } of asked.slice(0, 1))
    asked.push({ site_id, owner: UNKNOWN_ID }, { site_id: UNKNOWN_ID, owner })
  const counts = await sessions.countSessions(asked, CONTEXT)
  checkEqual(counts.length, asked.length, 'countSessions must return a count for each requested site')
  for (const [i, { site_id, owner }] of asked.entries()) {
    const open = rows.filter((row) => row.site_id === site_id && row.owner === owner && isOpen(row)).length
    if (counts[i] !== null) checkEqual(counts[i], open, `countSessions of ${site_id}`)
  }
  await checkEnds((ctx) => sessions.countSessions?.(asked, ctx), 'countSessions')
}

/** Data of the fake session inspector. */
export interface SessionWorld {
  /** Sessions. */
  sessions?: Partly<SessionRowInput>[]
}

const toSession: Make<SessionRowInput> = (given, place) =>
  fill(
    {
      session_id: `session-${place}`,
      site_id: 'site-1',
      owner: 'user-1',
      state: 'active',
      connector: null,
      opened_at: FAKE_TIME,
      expires_at: null,
      updated_at: FAKE_TIME,
      close_reason: null,
      connector_connected: null,
      shares: null,
      next_share_expires_at: null,
      viewers: null,
    },
    given,
  )

export function fakeSessions(world: SessionWorld): SessionInspector | undefined {
  if (!world.sessions) return undefined
  return {
    listSessions: (filter, page) => fakePage(toSession, world.sessions, filter, page),
    getSession: (session_id) => find(toSession, world.sessions, { session_id }),
  }
}

// Contract suite of the inspector of viewer streams.

/** Returns the contract suite of an inspector of viewer streams. `make` creates one with the same streams each time. */
export function subscriptionContract(given: MakeInspector<SubscriptionInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<SubscriptionInspector>, SubscriptionRowAnswer>(make, {
      name: 'listSubscriptions',
      list: (subscriptions, filter) => (page, ctx) =>
        subscriptions.listSubscriptions(filter as SubscriptionFilter, page, ctx),
      item: SubscriptionRowAnswer,
      id: 'subscription_id',
      filters: SubscriptionFilter.keyof().options,
    }),
    { name: 'countViewers counts the streams of each session', run: () => checkViewers(make) },
  ])
}

async function checkViewers(make: MakeInspector<Known<SubscriptionInspector>>): Promise<void> {
  const subscriptions = await make()
  if (!subscriptions?.countViewers) return notTested('countViewers is not implemented')
  const rows = await walk<SubscriptionRowAnswer>(
    (page, ctx) => subscriptions.listSubscriptions({}, page, ctx),
    100,
    'listSubscriptions',
  )
  const sessions = [...new Set(rows.map(({ session_id }) => session_id)).values()].slice(0, 100).concat(UNKNOWN_ID)
  const counts = await subscriptions.countViewers(sessions, CONTEXT)
  checkEqual(counts.length, sessions.length, 'countViewers must return a count for each requested session')
  for (const [i, session_id] of sessions.entries()) {
    const viewers = rows.filter((row) => row.session_id === session_id).length
    if (counts[i] !== null) checkEqual(counts[i], viewers, `countViewers of ${session_id}`)
  }
  await checkEnds((ctx) => subscriptions.countViewers?.(sessions, ctx), 'countViewers')
}

/** Data of the fake inspector of viewer streams. */
export interface SubscriptionWorld {
  /** Viewer streams. */
  subscriptions?: Partly<SubscriptionRowInput>[]
}

const toSubscription: Make<SubscriptionRowInput> = (given, place) =>
  fill(
    {
      subscription_id: `subscription-${place}`,
      session_id: 'session-1',
      site_id: 'site-1',
      user_id: 'user-1',
      node_id: null,
      opened_at: FAKE_TIME,
      pending: 0,
      dropped: 0,
      last_position: null,
      last_taken_at: null,
    },
    given,
  )

export function fakeSubscriptions(world: SubscriptionWorld): SubscriptionInspector | undefined {
  if (!world.subscriptions) return undefined
  return { listSubscriptions: (filter, page) => fakePage(toSubscription, world.subscriptions, filter, page) }
}
