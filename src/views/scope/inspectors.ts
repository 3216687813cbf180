/** Inspectors that see some users only: what whoever may not see everybody is answered from. */
import type { DeduplicatorInspector } from '../../contract/deduplicator.js'
import type { CommandFilter, DeliveryCommand, DeliveryInspector } from '../../contract/delivery.js'
import { admitsCommand } from '../../contract/delivery-rules.js'
import type { Inspectors } from '../../contract/families.js'
import type { HistoryInspector } from '../../contract/history.js'
import { admitsCall, type PendingCall, type PendingCallFilter, type RpcInspector } from '../../contract/rpc.js'
import { userStream } from '../../contract/streams.js'
import { scopeSessions, scopeSites, scopeSubscriptions } from './cooperative.js'
import { listOfUsers } from './list.js'
import { scopeConnections, scopeContexts, scopeWindows } from './registries.js'
import { ifSeen, refuse, type Seen, scopeUsers, seenOf, type UserScope } from './seen.js'

/**
 * `inspectors` that see the users of `scope` alone. Anybody else looks like nobody: in no list, no record, no number. What is
 * of all users and cannot be narrowed is refused as `not_narrowable`: the summaries of the deduplicator and of calls, how many connections came and went, and of delivery
 * everything but the commands of users and the evidence about one. An operation that this function does not know is not there.
 *
 * Lists go one user after the other, in the order of their ids. Where more than one user is asked for, numbers are those of a
 * walk over their entries within the bound of a request, and actions come without descriptions. A stream is that of the user
 * whose name it bears (`users/{user_id}/…`).
 *
 * @throws TypeError for users that are no list of ids, RangeError for more than 500.
 * @example
 * const team = scopeInspectors(inspectors, { user_ids: ['ada', 'olga'] })
 * const router = createDiagnosticsRouter({ inspectors: team, auth: apiKeyAuth(keyOfTheTeam) })
 */
export function scopeInspectors(inspectors: Inspectors, scope: UserScope): Inspectors {
  const seen = seenOf(scope)
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
  // One by one: what is new is closed until somebody has thought about it.
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

function scopeCalls(rpc: RpcInspector, seen: Seen): RpcInspector {
  const { checkInstance, summary } = rpc
  const listCalls = (only: PendingCallFilter) =>
    listOfUsers<PendingCall, PendingCallFilter>(
      seen.users,
      (filter, page, ask) => rpc.listPending({ ...filter, ...only }, page, ask),
      () => true,
      admitsCall,
    )
  const [waiting, overdue] = [listCalls({}), listCalls({ overdue: true })]
  return {
    ...scopeUsers(rpc, seen),
    listPending: (filter, page, ask) => (filter.overdue ? overdue : waiting)(filter, page, ask),
    getPending: async (id, ask) => ifSeen(await rpc.getPending(id, ask), seen),
    ...(checkInstance && {
      checkInstance: (instance, ask) =>
        seen.has(instance.user_id) ? checkInstance.call(rpc, instance, ask) : NO_INSTANCE,
    }),
    ...(summary && { summary: refuse }),
  }
}

function scopeHistory(history: HistoryInspector, seen: Seen): HistoryInspector {
  const { listStreams } = history
  const isIn = (stream: string, userId: string) => stream.startsWith(`${userStream(userId)}/`)
  return {
    ...scopeUsers(history, seen),
    async readMessages(query, ask) {
      const owner = seen.users.find((user) => isIn(query.stream, user))
      if (owner === undefined) return { items: [], truncated: false }
      const sample = await history.readMessages(query, ask)
      return { ...sample, items: sample.items.filter((message) => message?.user_id === owner) }
    },
    ...(listStreams && {
      listStreams: listOfUsers(
        seen.users,
        (filter, page, ask) => listStreams.call(history, filter, page, ask),
        ({ stream, user_id }) => isIn(stream, user_id),
      ),
    }),
  }
}

function scopeDeduplicator(deduplicator: DeduplicatorInspector, seen: Seen): DeduplicatorInspector {
  const { userSummary } = deduplicator
  return {
    summary: refuse,
    ...(userSummary && {
      userSummary: async (userId, ask) =>
        seen.has(userId) ? ifSeen(await userSummary.call(deduplicator, userId, ask), seen) : null,
    }),
  }
}

function scopeDelivery(delivery: DeliveryInspector, seen: Seen): DeliveryInspector {
  const { listCommands } = delivery
  return {
    summary: refuse,
    listNodes: refuse,
    listTenants: refuse,
    status: async (key, ask) => (seen.has(key.user_id) ? ifSeen(await delivery.status(key, ask), seen) : null),
    ...(listCommands && {
      listCommands: listOfUsers<DeliveryCommand, CommandFilter>(
        seen.users,
        (filter, page, ask) => listCommands.call(delivery, filter, page, ask),
        () => true,
        admitsCommand,
      ),
    }),
  }
}
