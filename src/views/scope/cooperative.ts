/** Cooperative sites, for those in sight: a site and its sessions are their owner's. */
import type { SessionFilter, SessionInspector, SessionRow } from '../../contract/sessions.js'
import type { SiteFilter, SiteInspector, SiteRow } from '../../contract/sites.js'
import { listOwned } from './list.js'
import { eachInSight, type Seen } from './seen.js'

/** `record` where its owner is in sight. */
const ifOwned = <T extends { owner: string }>(record: T | null, { has }: Seen): T | null =>
  record && has(record.owner) ? record : null

export function scopeSites(sites: SiteInspector, seen: Seen): SiteInspector {
  return {
    listSites: listOwned<'owner', SiteRow, SiteFilter>('owner', seen.users, (filter, page, ask) =>
      sites.listSites(filter, page, ask),
    ),
    getSite: async (id, ask) => ifOwned(await sites.getSite(id, ask), seen),
  }
}

export function scopeSessions(sessions: SessionInspector, seen: Seen): SessionInspector {
  const { countSessions } = sessions
  return {
    listSessions: listOwned<'owner', SessionRow, SessionFilter>('owner', seen.users, (filter, page, ask) =>
      sessions.listSessions(filter, page, ask),
    ),
    getSession: async (id, ask) => ifOwned(await sessions.getSession(id, ask), seen),
    ...(countSessions && {
      countSessions: eachInSight(seen, ({ owner }) => owner, countSessions.bind(sessions)),
    }),
  }
}
