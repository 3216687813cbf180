/**
 * Reads the memory dispatcher: counts, its one node, its scopes and single records, never a payload. Reading ends no
 * command: one past its deadline is overdue until the loop has recorded its end.
 */

import type { Clock } from '../../internal/async/timer.js'
import {
  type CommandFilter,
  CommandKey,
  CommandState,
  type DeliveryCommand,
  type DeliveryInspector,
  type DeliveryMailbox,
  type DeliveryNode,
  type DeliverySummary,
  type DeliveryTenant,
  LATENCY_SAMPLE,
  type MailboxFilter,
  NO_LEGACY,
  TRACKED_STATES,
  WaitsFor,
} from '../../internal/contract/delivery.js'
import {
  AGE_SAMPLE,
  admitsCommand,
  latencyOf,
  requireIdentity,
  STALE_MS,
  shownCapacity,
  stepTimes,
  toDeliveryCommand,
} from '../../internal/contract/delivery-rules.js'
import { clientKey, commandKey, toTimestamp } from '../../internal/contract/ids.js'
import type { JsonObject } from '../../internal/contract/json.js'
import {
  type InspectionContext,
  type Order,
  type Page,
  type PageQuery,
  parseSequence,
  scanLimit,
} from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { createKeptRows } from '../table/kept-rows.js'
import { byNumber } from '../table/ordered-index.js'
import { stepInstantsOf, stepOf, type TrackedCommand, toDeliveryStatus, type Waiter } from './command.js'
import type { DeliveryStore } from './commands.js'
import type { DeliveryLoop } from './loop.js'
import type { ReservedScope } from './reservations.js'

/**
 * Maximum number of overdue commands that one summary examines individually; there are more only if the loop is far
 * behind.
 */
const OVERDUE_MAX = 1_000

interface DeliveryInspectorOptions {
  store: DeliveryStore
  clock: Clock
  loop: DeliveryLoop
  nodeId: string
  deploymentId: string | null
  /** Metadata of the node, from the host. */
  metadata: JsonObject | undefined
}

/** Returns candidates for `filter` after a position: the shortest list, or the overdue commands if there are few. */
function candidates(
  store: DeliveryStore,
  filter: CommandFilter,
  place: number,
  order: Order,
  now: number,
  bound: number,
) {
  const list = store.lists.narrowest(filter)
  const late = store.overdue(now)
  if (!filter.overdue || late > Math.min(list.size, bound)) return { examined: 0, commands: list.from(place, order) }
  const commands: TrackedCommand[] = []
  for (const command of store.deadlines.after(null)) {
    if (command.deadlineAt > now) break
    if (order === 'newest' ? command.sequence < place : command.sequence > place) commands.push(command)
  }
  commands.sort((a, b) => byNumber(a.sequence, b.sequence) * (order === 'newest' ? -1 : 1))
  return { examined: late - commands.length, commands }
}

/** Yields overdue commands, at most `OVERDUE_MAX`. */
function* someOverdue({ deadlines }: DeliveryStore, now: number): Generator<TrackedCommand, void, void> {
  let remaining = OVERDUE_MAX
  for (const command of deadlines.after(null)) {
    if (command.deadlineAt > now || remaining === 0) return
    remaining--
    yield command
  }
}

/**
 * Returns the number of commands within their deadline whose next attempt is due, by whether their client is attached.
 */
function dueAt(store: DeliveryStore, now: number, steady: number): { attached: number; away: number } {
  const { ready, readyAttached } = store.totals
  const due = { attached: readyAttached, away: ready - readyAttached }
  const add = ({ mailbox }: TrackedCommand, step: number) => {
    due[mailbox?.waiter ? 'attached' : 'away'] += step
  }
  // Commands whose pause is over: the loop is about to move them.
  for (const command of store.backoff.after(null)) {
    if (command.wakeAt > steady) break
    add(command, 1)
  }
  for (const command of someOverdue(store, now))
    if (command.phase === 'ready' || (command.phase === 'backoff' && command.wakeAt <= steady)) add(command, -1)
  return due
}

type Counted<Name extends 'by_state' | 'by_reason' | 'waits_for'> = DeliverySummary[Name]

/**
 * Returns retained commands by state, and ended ones by reason; `null` if more records have expired than one call
 * removes.
 */
function retainedBy({ ended, rejected, lists }: DeliveryStore): Pick<DeliverySummary, 'by_state' | 'by_reason'> {
  const isSwept = [ended, rejected].every((retention) => retention.sweep())
  if (!isSwept) return { by_state: null, by_reason: null }
  const states = CommandState.options.map((state) => [state, lists.sizeOf(state)])
  return {
    by_state: Object.fromEntries(states) as Counted<'by_state'>,
    by_reason: Object.fromEntries([...lists.reasons].sort()),
  }
}

/** Returns the numbers of commands that have not ended, by what they wait for. */
function waitingFor(store: DeliveryStore, now: number): NonNullable<Counted<'waits_for'>> {
  const { totals, attempted, backoff, lists, tracked } = store
  const counts = Object.fromEntries(WaitsFor.options.map((name) => [name, 0])) as NonNullable<Counted<'waits_for'>>
  counts.expiry = store.overdue(now)
  if (counts.expiry > OVERDUE_MAX) return { ...counts, unknown: tracked.size - counts.expiry }
  counts.client_not_attached = totals.ready - totals.readyAttached
  counts.turn = totals.readyAttached
  counts.delivery = totals.delivering
  counts.acknowledgement = attempted.size - totals.delivering
  counts.retry_pause = backoff.size
  counts.outcome = lists.sizeOf('acknowledged')
  // Each is counted in its step, too.
  for (const command of someOverdue(store, now)) {
    const status = toDeliveryStatus(command, Number.NEGATIVE_INFINITY)
    const { waits_for } = toDeliveryCommand(status, null, stepOf(command))
    counts[waits_for ?? 'unknown'] -= 1
  }
  return counts
}

/** Returns the time since the oldest command that has not ended was admitted, in ms; `null` if there is none. */
function oldestOpenAge({ lists }: DeliveryStore, steady: number): number | null {
  const ages = TRACKED_STATES.flatMap((state) => {
    const [oldest] = lists.inState(state)
    return oldest ? [steady - oldest.queuedAt] : []
  })
  return ages.length === 0 ? null : Math.max(...ages)
}

/** Returns the age of the oldest of the commands that were admitted first, and how many of them were examined. */
function sampleAges({ queued }: DeliveryStore, steady: number): { sampled: number; oldest: number } {
  let sampled = 0
  let oldest = 0
  for (const command of queued.after(null)) {
    oldest = Math.max(oldest, steady - command.queuedAt)
    if (++sampled === AGE_SAMPLE) break
  }
  return { sampled, oldest }
}

/** Returns the counts of the summary, by the wall clock and the steady clock. */
function countsOf(store: DeliveryStore, now: number, steady: number) {
  const within = store.tracked.size - store.overdue(now)
  const { attached, away } = dueAt(store, now, steady)
  const due = Math.min(within, attached)
  const next = store.deadlines.first()
  const { sampled, oldest } = sampleAges(store, steady)
  return {
    tracked_commands: store.tracked.size,
    ...retainedBy(store),
    waits_for: waitingFor(store, now),
    due_commands: due,
    waiting_for_client: Math.min(within - due, away),
    oldest_deadline_at: next ? toTimestamp(next.deadlineAt) : null,
    oldest_queued_age_ms: sampled === 0 ? null : oldest,
    sample_size: sampled,
    oldest_open_age_ms: oldestOpenAge(store, steady),
    latency: latencyOf(store.ended.newest(LATENCY_SAMPLE).map((command) => stepTimes(stepInstantsOf(command)))),
  }
}

const toTenant = ({ scope_id, commands, capacity }: ReservedScope): DeliveryTenant => {
  const oldest = commands.first()
  return {
    scope_id,
    reserved_commands: commands.size,
    oldest_deadline_at: oldest ? toTimestamp(oldest.deadlineAt) : null,
    capacity: shownCapacity(capacity),
  }
}

/** Returns the attached connections after a position, from the shortest list that contains all under the filter. */
function attachedIn(
  { attached, attachedOf, mailboxes }: DeliveryStore,
  user_id: string | undefined,
  client_id: string | undefined,
  place: number,
): Iterable<Waiter> {
  if (user_id === undefined) return attached.after(place)
  if (client_id === undefined) return attachedOf.after(user_id, place)
  const waiter = mailboxes.get(clientKey({ user_id, client_id }))?.waiter
  return waiter && waiter.sequence > place ? [waiter] : []
}

function listMailboxes(
  store: DeliveryStore,
  nodeId: string,
  { user_id, client_id, node_id }: MailboxFilter,
  { cursor, limit }: PageQuery,
  ctx: InspectionContext,
): Page<DeliveryMailbox> {
  const bound = scanLimit(ctx)
  const items: DeliveryMailbox[] = []
  let last = parseSequence(cursor)
  let examined = 0
  for (const waiter of attachedIn(store, user_id, client_id, last)) {
    if (items.length === limit || examined === bound)
      return { items, next_cursor: String(last), has_more: true, examined }
    examined++
    last = waiter.sequence
    const { mailbox, instance_id, attachedAt } = waiter
    if (client_id !== undefined && mailbox.client_id !== client_id) continue
    if (node_id !== undefined && node_id !== nodeId) continue
    items.push({
      user_id: mailbox.user_id,
      client_id: mailbox.client_id,
      instance_id,
      node_id: nodeId,
      attached_at: toTimestamp(attachedAt),
      waiting_commands: mailbox.ready.size,
    })
  }
  return { items, next_cursor: null, has_more: false, examined }
}

/** Returns this node as it is now. */
function ownNode({ store, clock, loop, nodeId, metadata }: DeliveryInspectorOptions): DeliveryNode {
  const staleness_ms = clock.steady() - loop.lastPass.steady
  const stale = staleness_ms > STALE_MS
  const { recovery, outcome, acknowledgement, other } = store.counters
  return {
    node_id: nodeId,
    mailbox_listener_alive: null,
    // Whether a silent loop still runs, and which clients are served, is unknown.
    reconciliation_loop_alive: stale ? null : !loop.closed,
    active_drainers: stale ? null : store.totals.drainers,
    connection_waiters: stale ? null : store.totals.waiters,
    updated_at: toTimestamp(loop.lastPass.at),
    stale,
    staleness_ms,
    counters: {
      recovery: { ...recovery },
      outcome: { ...outcome },
      acknowledgement: { ...acknowledgement },
      other: { ...other },
    },
    latency: structuredClone(store.latency),
    ...(metadata && { metadata }),
  }
}

export function createDeliveryInspector(options: DeliveryInspectorOptions): DeliveryInspector {
  const { store, clock, nodeId, deploymentId } = options
  const endedRow = createKeptRows<TrackedCommand, DeliveryCommand>()
  const toRow = (command: TrackedCommand, now: number) =>
    toDeliveryCommand(toDeliveryStatus(command, now), command.action, stepOf(command))

  return {
    version: store.version,
    summary() {
      const now = clock.now()
      return {
        deployment_id: deploymentId,
        mode: 'direct',
        ...countsOf(store, now, clock.steady()),
        ...NO_LEGACY,
        observed_at: toTimestamp(now),
      }
    },

    listNodes(page) {
      // There is one node and so one page: no cursor was ever issued.
      if (page.cursor !== null) throw new Refusal('invalid_cursor')
      return { items: [ownNode(options)], next_cursor: null, has_more: false, examined: 1 }
    },

    listCommands(filter, { cursor, limit, order = 'oldest' }, ctx) {
      const now = clock.now()
      const bound = scanLimit(ctx)
      const items: DeliveryCommand[] = []
      let last = parseSequence(cursor, order)
      const found = candidates(store, filter, last, order, now, bound)
      let { examined } = found
      for (const command of found.commands) {
        if (items.length === limit || examined === bound)
          return { items, next_cursor: String(last), has_more: true, examined }
        examined++
        last = command.sequence
        // An expired record may not be swept.
        if (store.find(command.key) !== command) continue
        const item = command.terminal
          ? endedRow(command.sequence, command, () => toRow(command, now))
          : toRow(command, now)
        if (admitsCommand(filter, item)) items.push(item)
      }
      return { items, next_cursor: null, has_more: false, examined }
    },

    deliveryChurn({ node_id }) {
      const isOwn = node_id === undefined || node_id === nodeId
      const items = isOwn ? store.minutes.read(node_id !== undefined) : []
      return { items, observed_at: toTimestamp(clock.now()) }
    },

    listMailboxes: (filter, page, ctx) => listMailboxes(store, nodeId, filter, page, ctx),

    listTenants({ cursor, limit }, ctx) {
      const bound = scanLimit(ctx)
      const items: DeliveryTenant[] = []
      let last = parseSequence(cursor)
      let examined = 0
      for (const scope of store.reservations.after(last)) {
        if (items.length === limit || examined === bound)
          return { items, next_cursor: String(last), has_more: true, examined }
        examined++
        last = scope.seq
        items.push(toTenant(scope))
      }
      return { items, next_cursor: null, has_more: false, examined }
    },

    getTenant(scopeId) {
      const scope = store.reservations.get(scopeId)
      return scope ? toTenant(scope) : null
    },

    status(key) {
      const read = CommandKey.safeParse(key)
      if (!read.success) throw new Refusal('invalid_identity', 'the ids of the command are malformed')
      requireIdentity(read.data)
      const command = store.find(commandKey(read.data))
      return command ? toDeliveryStatus(command, clock.now()) : null
    },
  }
}
