/** Cooperative sites, for those in sight: a site and its sessions are their owner's, a stream its viewer's. */
import type { Ask, PageQuery } from '../../contract/page.js'
import type { SessionFilter, SessionInspector, SessionRow } from '../../contract/sessions.js'
import type { SiteFilter, SiteInspector, SiteRow } from '../../contract/sites.js'
import { type SubscriptionFilter, type SubscriptionInspector, SubscriptionRow } from '../../contract/subscriptions.js'
import { walk } from '../reading.js'
import { listOfUsers, listOwned } from './list.js'
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

/** Viewers are those in sight: they are counted by walking over their streams, as far as a request may. */
export function scopeSubscriptions(subscriptions: SubscriptionInspector, seen: Seen): SubscriptionInspector {
  const listSubscriptions = listOfUsers<SubscriptionRow, SubscriptionFilter>(seen.users, (filter, page, ask) =>
    subscriptions.listSubscriptions(filter, page, ask),
  )
  return {
    listSubscriptions,
    ...(subscriptions.countViewers && {
      async countViewers(sessionIds, ask) {
        const viewers = new Map(sessionIds.map((id) => [id, 0]))
        const list = (page: PageQuery, asking: Ask) => listSubscriptions({}, page, asking)
        const view = { ask, now: Date.now, onError: (_: unknown, error: unknown) => ask.onError?.(error) }
        const reading = await walk(
          'subscriptions',
          { entry: SubscriptionRow, id: 'subscription_id', list },
          view,
          viewers,
          (counts, rows) => {
            for (const { session_id } of rows) {
              const count = counts.get(session_id)
              if (count !== undefined) counts.set(session_id, count + 1)
            }
          },
        )
        return sessionIds.map((id) => (reading.truncated ? null : (viewers.get(id) ?? null)))
      },
    }),
  }
}
