/** Contract suite of the session inspector. */
import { SessionFilter, type SessionInspector, SessionRow } from '../contract/sessions.js'
import type { SiteKey } from '../contract/sites.js'
import {
  CONTEXT,
  type ContractCase,
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

/** Returns the contract suite of a session inspector. `make` creates one with the same sessions each time. */
export function sessionContract(make: MakeInspector<SessionInspector>): ContractCase[] {
  return toCases([
    ...listCases<SessionInspector, SessionRow>(make, {
      name: 'listSessions',
      ordered: true,
      list: (sessions, filter) => (page, ctx) => sessions.listSessions(filter, page, ctx),
      item: SessionRow,
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

const isOpen = ({ state }: SessionRow) => state !== 'closed' && state !== 'expired'

async function checkCounts(make: MakeInspector<SessionInspector>): Promise<void> {
  const sessions = await make()
  if (!sessions?.countSessions) return notTested('countSessions is not implemented')
  const rows = await walk<SessionRow>((page, ctx) => sessions.listSessions({}, page, ctx), 100, 'listSessions')
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
  sessions?: Partly<SessionRow>[]
}

const toSession: Make<SessionRow> = (given, place) =>
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
