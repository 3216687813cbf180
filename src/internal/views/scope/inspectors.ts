/** Inspectors that are restricted to some users, for callers who may not see everyone's data. */

import type { BrowserWindowRegistryInspector } from '../../contract/browser-windows.js'
import type { RegistryInspector } from '../../contract/connections.js'
import type { ContextRegistryInspector } from '../../contract/contexts.js'
import type { DeduplicatorInspector } from '../../contract/deduplicator.js'
import type {
  CommandFilter,
  DeliveryCommandInput,
  DeliveryInspector,
  DeliveryMailboxInput,
  MailboxFilter,
} from '../../contract/delivery.js'
import { admitsCommand } from '../../contract/delivery-rules.js'
import type { Inspectors } from '../../contract/families.js'
import type { HistoryInspector } from '../../contract/history.js'
import { userStream } from '../../contract/ingest.js'
import { type InspectionContext, type PageQuery, withItems, withMetadata } from '../../contract/page.js'
import { admitsCall, type PendingCallFilter, type PendingCallInput, type RpcInspector } from '../../contract/rpc.js'
import type { SessionFilter, SessionInspector, SessionRowInput } from '../../contract/sessions.js'
import type { SiteFilter, SiteInspector, SiteRowInput } from '../../contract/sites.js'
import {
  type SubscriptionFilter,
  type SubscriptionInspector,
  SubscriptionRowAnswer,
  type SubscriptionRowInput,
} from '../../contract/subscriptions.js'
import { walkEntries } from '../reading.js'
import {
  countOfOne,
  eachVisibleUser,
  ifVisible,
  indexMetadata,
  listOfUsers,
  listOwned,
  onlyUser,
  parseVisibleUsers,
  refuseUnscopable,
  scopeUsers,
  type UserScope,
  type VisibleUsers,
} from './seen.js'

// Cooperative sites, for visible users: a site and its sessions belong to their owner, a stream to its viewer.

/** `record` where its owner is in sight. */
const ifOwned = <T extends { owner: string }>(record: T | null, { has }: VisibleUsers): T | null =>
  record && has(record.owner) ? record : null

function scopeSites(sites: SiteInspector, seen: VisibleUsers): SiteInspector {
  return {
    listSites: listOwned<'owner', SiteRowInput, SiteFilter>('owner', seen.users, (filter, page, ctx) =>
      sites.listSites(filter, page, ctx),
    ),
    getSite: async (id, ctx) => ifOwned(await sites.getSite(id, ctx), seen),
  }
}

function scopeSessions(sessions: SessionInspector, seen: VisibleUsers): SessionInspector {
  const { countSessions } = sessions
  return {
    listSessions: listOwned<'owner', SessionRowInput, SessionFilter>('owner', seen.users, (filter, page, ctx) =>
      sessions.listSessions(filter, page, ctx),
    ),
    getSession: async (id, ctx) => ifOwned(await sessions.getSession(id, ctx), seen),
    ...(countSessions && {
      countSessions: eachVisibleUser(seen, ({ owner }) => owner, countSessions.bind(sessions)),
    }),
  }
}

/** Counts the visible viewers by walking over their streams, within the bound of a request. */
function scopeSubscriptions(subscriptions: SubscriptionInspector, seen: VisibleUsers): SubscriptionInspector {
  const listSubscriptions = listOfUsers<SubscriptionRowInput, SubscriptionFilter>(seen.users, (filter, page, ctx) =>
    subscriptions.listSubscriptions(filter, page, ctx),
  )
  return {
    listSubscriptions,
    ...(subscriptions.countViewers && {
      async countViewers(sessionIds, ctx) {
        const viewers = new Map(sessionIds.map((id) => [id, 0]))
        const list = (page: PageQuery, asking: InspectionContext) => listSubscriptions({}, page, asking)
        const view = { ctx, now: Date.now, onError: (_: unknown, error: unknown) => ctx.onError?.(error) }
        const reading = await walkEntries(
          'subscriptions',
          { entry: SubscriptionRowAnswer, id: 'subscription_id', list },
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

// The registries of what clients report, for visible users: connections, contexts, browser windows.

function scopeConnections(registry: RegistryInspector, seen: VisibleUsers): RegistryInspector {
  const {
    listConnectionHistory,
    countConnections,
    currentInstances,
    listActions,
    connectionChurn,
    listConnectionEvents,
  } = registry
  return {
    ...scopeUsers(registry, seen),
    listConnections: listOfUsers(seen.users, (filter, page, ctx) => registry.listConnections(filter, page, ctx)),
    getConnection: async (id, ctx) => ifVisible(await registry.getConnection(id, ctx), seen),
    ...(listConnectionHistory && {
      async listConnectionHistory(id, page, ctx) {
        if (!ifVisible(await registry.getConnection(id, ctx), seen)) return null
        const listed = await listConnectionHistory.call(registry, id, page, ctx)
        if (listed === null) return null
        return withItems(
          listed,
          listed.items.filter(({ connection_id }) => connection_id === id),
        )
      },
    }),
    ...(currentInstances && {
      async currentInstances(clients, ctx) {
        const own = clients.filter(({ user_id }) => seen.has(user_id))
        const found = own.length === 0 ? [] : await currentInstances.call(registry, own, ctx)
        const byClient = new Map(own.map((client, i) => [client, found[i] ?? null]))
        return clients.map((client) => byClient.get(client) ?? null)
      },
    }),
    ...(countConnections && { countConnections: countOfOne(seen, countConnections.bind(registry)) }),
    ...(listConnectionEvents && {
      listConnectionEvents: listOfUsers(seen.users, (filter, page, ctx) =>
        listConnectionEvents.call(registry, filter, page, ctx),
      ),
    }),
    ...(connectionChurn && { connectionChurn: refuseUnscopable }),
    ...(listActions && {
      async listActions({ user_id: asked, ...filter }, page, ctx) {
        const user_id = onlyUser(seen, asked)
        if (user_id === null) return null
        const listed = await listActions.call(registry, { ...filter, user_id }, page, ctx)
        if (listed === null) return null
        // Without `examined`: an index of actions skips silent connections of other users.
        const { items, next_cursor, has_more, omitted, truncated } = listed
        return { items, next_cursor, has_more, ...(omitted && { omitted }), ...(truncated && { truncated }) }
      },
    }),
  }
}

function scopeContexts(contexts: ContextRegistryInspector, seen: VisibleUsers): ContextRegistryInspector {
  const { countContexts, countByWindow } = contexts
  return {
    ...scopeUsers(contexts, seen),
    listContexts: listOfUsers(seen.users, (filter, page, ctx) => contexts.listContexts(filter, page, ctx)),
    getContext: async (id, ctx) => ifVisible(await contexts.getContext(id, ctx), seen),
    ...(countContexts && { countContexts: countOfOne(seen, countContexts.bind(contexts)) }),
    ...(countByWindow && {
      async countByWindow(windowIds, ctx, windows = []) {
        // Other users may have contexts in a window whose user is unknown.
        const own = windows.filter(({ user_id }) => seen.has(user_id))
        const ids = own.map(({ window_id }) => window_id)
        const counted = own.length === 0 ? [] : await countByWindow.call(contexts, ids, ctx, own)
        return own.length === windowIds.length
          ? counted
          : withMetadata([...counted], { ...indexMetadata(counted), truncated: true })
      },
    }),
  }
}

function scopeWindows(windows: BrowserWindowRegistryInspector, seen: VisibleUsers): BrowserWindowRegistryInspector {
  const { countBrowserWindows } = windows
  return {
    ...scopeUsers(windows, seen),
    listBrowserWindows: listOfUsers(seen.users, (filter, page, ctx) => windows.listBrowserWindows(filter, page, ctx)),
    getBrowserWindow: async (id, ctx) => ifVisible(await windows.getBrowserWindow(id, ctx), seen),
    ...(countBrowserWindows && { countBrowserWindows: countOfOne(seen, countBrowserWindows.bind(windows)) }),
  }
}

/**
 * Restricts `inspectors` to the users of `scope`. Data of all other users is absent from lists, records and counts.
 * Operations that cannot be restricted are refused with `not_narrowable`: the summaries of the deduplicator and of
 * calls, how many connections came and went, and of delivery everything but the commands and mailboxes of users, and
 * the evidence about one command. Operations that this function does not know are missing.
 *
 * Lists are sorted by user id first. If more than one user is visible, counts come from a walk over their entries
 * within the bound of a request, and actions have no descriptions. A stream belongs to the user in its name
 * (`users/{user_id}/…`).
 *
 * @throws TypeError if `user_ids` is not a list of ids, RangeError for more than 500.
 * @example
 * const team = scopeInspectors(inspectors, { user_ids: ['ada', 'olga'] })
 * const router = createDiagnosticsRouter({ inspectors: team, auth: apiKeyAuth(keyOfTheTeam) })
 */
export function scopeInspectors(inspectors: Inspectors, scope: UserScope): Inspectors {
  const seen = parseVisibleUsers(scope)
  const {
    history,
    registry,
    rpc,
    deduplicator,
    contextRegistry,
    browserWindowRegistry,
    delivery,
    sites,
    sessions,
    subscriptions,
  } = inspectors
  // Listed one by one: a new operation stays unavailable until it is added here.
  return {
    history: history && scopeHistory(history, seen),
    registry: registry && scopeConnections(registry, seen),
    rpc: rpc && scopeCalls(rpc, seen),
    deduplicator: deduplicator && scopeDeduplicator(deduplicator, seen),
    contextRegistry: contextRegistry && scopeContexts(contextRegistry, seen),
    browserWindowRegistry: browserWindowRegistry && scopeWindows(browserWindowRegistry, seen),
    delivery: delivery && scopeDelivery(delivery, seen),
    sites: sites && scopeSites(sites, seen),
    sessions: sessions && scopeSessions(sessions, seen),
    subscriptions: subscriptions && scopeSubscriptions(subscriptions, seen),
  }
}

const NO_INSTANCE = { current: false, current_instance_id: null }

function scopeCalls(rpc: RpcInspector, seen: VisibleUsers): RpcInspector {
  const { checkInstance, summary, listEnded, getEnded } = rpc
  return {
    ...scopeUsers(rpc, seen),
    listPending: listOfUsers<PendingCallInput, PendingCallFilter>(
      seen.users,
      (filter, page, ctx) => rpc.listPending(filter, page, ctx),
      () => true,
      admitsCall,
    ),
    getPending: async (id, ctx) => ifVisible(await rpc.getPending(id, ctx), seen),
    ...(checkInstance && {
      checkInstance: (instance, ctx) =>
        seen.has(instance.user_id) ? checkInstance.call(rpc, instance, ctx) : NO_INSTANCE,
    }),
    ...(listEnded && {
      listEnded: listOfUsers(seen.users, (filter, page, ctx) => listEnded.call(rpc, filter, page, ctx)),
    }),
    ...(getEnded && {
      getEnded: async (id, ctx) => ifVisible(await getEnded.call(rpc, id, ctx), seen),
    }),
    ...(summary && { summary: refuseUnscopable }),
  }
}

function scopeHistory(history: HistoryInspector, seen: VisibleUsers): HistoryInspector {
  const { listStreams } = history
  const isIn = (stream: string, userId: string) => stream.startsWith(`${userStream(userId)}/`)
  return {
    ...scopeUsers(history, seen),
    async readMessages(query, ctx) {
      const owner = seen.users.find((user) => isIn(query.stream, user))
      if (owner === undefined) return { items: [], truncated: false }
      const sample = await history.readMessages(query, ctx)
      return { ...sample, items: sample.items.filter((message) => (message?.user_id ?? owner) === owner) }
    },
    ...(listStreams && {
      listStreams: listOfUsers(
        seen.users,
        (filter, page, ctx) => listStreams.call(history, filter, page, ctx),
        ({ stream, user_id }) => isIn(stream, user_id),
      ),
    }),
  }
}

function scopeDeduplicator(deduplicator: DeduplicatorInspector, seen: VisibleUsers): DeduplicatorInspector {
  const { userSummary } = deduplicator
  return {
    summary: refuseUnscopable,
    ...(userSummary && {
      userSummary: async (userId, ctx) =>
        seen.has(userId) ? ifVisible(await userSummary.call(deduplicator, userId, ctx), seen) : null,
    }),
  }
}

function scopeDelivery(delivery: DeliveryInspector, seen: VisibleUsers): DeliveryInspector {
  const { listCommands, listMailboxes, deliveryChurn } = delivery
  return {
    summary: refuseUnscopable,
    listNodes: refuseUnscopable,
    listTenants: refuseUnscopable,
    status: async (key, ctx) => (seen.has(key.user_id) ? ifVisible(await delivery.status(key, ctx), seen) : null),
    ...(listCommands && {
      listCommands: listOfUsers<DeliveryCommandInput, CommandFilter>(
        seen.users,
        (filter, page, ctx) => listCommands.call(delivery, filter, page, ctx),
        () => true,
        admitsCommand,
      ),
    }),
    ...(listMailboxes && {
      listMailboxes: listOfUsers<DeliveryMailboxInput, MailboxFilter>(seen.users, (filter, page, ctx) =>
        listMailboxes.call(delivery, filter, page, ctx),
      ),
    }),
    ...(deliveryChurn && { deliveryChurn: refuseUnscopable }),
  }
}
