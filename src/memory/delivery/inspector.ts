/** Reads the memory dispatcher: counts, its one node, its scopes and single records, never a payload. */

import type { Clock } from '../../async/clock.js'
import {
  type CommandFilter,
  CommandKey,
  type DeliveryCommand,
  type DeliveryInspector,
  type DeliveryTenant,
} from '../../contract/delivery.js'
import {
  AGE_SAMPLE,
  admitsCommand,
  expiredAt,
  requireIdentity,
  STALE_MS,
  shownCapacity,
  toDeliveryCommand,
} from '../../contract/delivery-rules.js'
import { commandKey, toTimestamp } from '../../contract/ids.js'
import type { JsonObject } from '../../contract/json.js'
import { examinable, parseSequence } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { byNumber } from '../table/ordered-index.js'
import { type TrackedCommand, toDeliveryStatus } from './command.js'
import type { DeliveryStore } from './commands.js'
import type { DeliveryLoop } from './loop.js'
import type { ReservedScope } from './reservations.js'

interface DeliveryInspectorOptions {
  store: DeliveryStore
  clock: Clock
  loop: DeliveryLoop
  nodeId: string
  deploymentId: string | null
  /** What the host says of the node. */
  metadata: JsonObject | undefined
}

/** All commands under `filter` behind a place, and more: the shortest list, or those that are overdue where they are few. */
function candidates(store: DeliveryStore, filter: CommandFilter, place: number, now: number, bound: number) {
  const list = store.lists.narrowest(filter)
  const late = store.deadlines.rank({ deadlineAt: now, sequence: Number.POSITIVE_INFINITY, wakeAt: 0 })
  if (!filter.overdue || late > Math.min(list.size, bound)) return { examined: 0, commands: list.after(place) }
  const commands: TrackedCommand[] = []
  for (const command of store.deadlines.after(null)) {
    if (command.deadlineAt > now) break
    if (command.sequence > place) commands.push(command)
  }
  commands.sort((a, b) => byNumber(a.sequence, b.sequence))
  return { examined: late - commands.length, commands }
}

/** The age of the oldest of the commands that were admitted first, and how many of them were looked at. */
function sampleAges({ queued }: DeliveryStore, steady: number): { sampled: number; oldest: number } {
  let sampled = 0
  let oldest = 0
  for (const command of queued.after(null)) {
    oldest = Math.max(oldest, steady - command.queuedAt)
    if (++sampled === AGE_SAMPLE) break
  }
  return { sampled, oldest }
}

function toTenant({ scope_id, commands, capacity }: ReservedScope): DeliveryTenant {
  const oldest = commands.first()?.deadlineAt
  return {
    scope_id,
    reserved_commands: commands.size,
    oldest_deadline_at: oldest === undefined ? null : toTimestamp(oldest),
    capacity: shownCapacity(capacity),
  }
}

export function createDeliveryInspector(options: DeliveryInspectorOptions): DeliveryInspector {
  const { store, clock, loop, nodeId, deploymentId, metadata } = options

  return {
    version: store.version,
    summary() {
      const steady = clock.steady()
      const oldestDeadline = store.deadlines.first()?.deadlineAt
      const { sampled, oldest } = sampleAges(store, steady)
      const paused = { wakeAt: steady, sequence: Number.POSITIVE_INFINITY, deadlineAt: 0 }
      return {
        deployment_id: deploymentId,
        mode: 'direct',
        tracked_commands: store.tracked.size,
        due_commands: store.totals.ready + store.backoff.rank(paused),
        oldest_deadline_at: oldestDeadline === undefined ? null : toTimestamp(oldestDeadline),
        oldest_queued_age_ms: sampled === 0 ? null : oldest,
        sample_size: sampled,
        legacy_stream_depth: null,
        legacy_pending_depth: null,
        observed_at: toTimestamp(clock.now()),
      }
    },

    listNodes(page) {
      // There is one node and so one page: no token was ever handed out.
      if (page.cursor !== null) throw new Refusal('invalid_cursor')
      const staleness_ms = clock.steady() - loop.lastPass.steady
      const stale = staleness_ms > STALE_MS
      const { recovery, outcome, acknowledgement, other } = store.counters
      const node = {
        node_id: nodeId,
        mailbox_listener_alive: null,
        // Nobody knows whether a loop that is silent still runs, and with it who is served.
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
        ...(metadata && { metadata }),
      }
      return { items: [node], next_cursor: null, has_more: false, examined: 1 }
    },

    listCommands(filter, { cursor, limit }, ask) {
      const now = clock.now()
      const bound = examinable(ask)
      const items: DeliveryCommand[] = []
      let last = parseSequence(cursor)
      const found = candidates(store, filter, last, now, bound)
      let { examined } = found
      for (const command of found.commands) {
        if (items.length === limit || examined === bound)
          return { items, next_cursor: String(last), has_more: true, examined }
        examined++
        last = command.sequence
        // One whose time is over may not have been swept yet.
        if (store.find(command.key) !== command) continue
        const item = toDeliveryCommand(toDeliveryStatus(command), now)
        if (admitsCommand(filter, item)) items.push(item)
      }
      return { items, next_cursor: null, has_more: false, examined }
    },

    listTenants({ cursor, limit }) {
      const items = []
      let last = parseSequence(cursor)
      for (const scope of store.reservations.after(last)) {
        if (items.length === limit) return { items, next_cursor: String(last), has_more: true }
        items.push(toTenant(scope))
        last = scope.seq
      }
      return { items, next_cursor: null, has_more: false }
    },

    getTenant(scopeId) {
      const scope = store.reservations.get(scopeId)
      return scope ? toTenant(scope) : null
    },

    status(key) {
      const read = CommandKey.safeParse(key)
      if (!read.success) throw new Refusal('invalid_identity', 'no command can have these ids')
      requireIdentity(read.data)
      const command = store.find(commandKey(read.data))
      return command ? expiredAt(toDeliveryStatus(command), clock.now()) : null
    },
  }
}
