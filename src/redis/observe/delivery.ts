/** Reads the dispatcher of a shared store: counts, nodes, scopes and single records, never a payload. */
import { CommandKey, type DeliveryInspector } from '../../contract/delivery.js'
import { AGE_SAMPLE, requireIdentity } from '../../contract/delivery-rules.js'
import { toTimestamp } from '../../contract/ids.js'
import { Refusal } from '../../refusal.js'
import { count } from '../reply.js'
import type { Store } from '../store.js'
import { type LegacyStream, readLegacy } from './delivery-legacy.js'
import { NODES } from './delivery-nodes.js'
import { readDeliveryStatus, SHOWN_FIELDS } from './delivery-record.js'
import { listScopes } from './delivery-scopes.js'
import { instantsOf } from './instants.js'
import { readPage } from './pages.js'
import { BadRow, readIndex } from './rows.js'
import { allShards } from './shards.js'

const NAME = 'delivery'

/** @param legacy An older command stream to look at besides. */
export function createDeliveryInspector(store: Store, legacy: LegacyStream | undefined = undefined): DeliveryInspector {
  return {
    async summary(ask) {
      const shards = await allShards(store, ask)
      const [now, depths] = await Promise.all([store.time(ask), readLegacy(store, legacy, ask)])
      const parts = await Promise.all(
        shards.map(async (shard) => {
          const key = (name: string) => store.key(shard, NAME, name)
          const index = (name: string, command: string, ...args: string[]) =>
            readIndex(store, [command, key(name), ...args], ask)
          const [tracked, queued, later, deadline, oldest] = await Promise.all([
            index('deadlines', 'ZCARD'),
            index('queued', 'ZCARD'),
            index('wakes', 'ZCOUNT', `(${now}`, '+inf'),
            index('deadlines', 'ZRANGE', '0', '0', 'WITHSCORES'),
            index('queued', 'ZRANGE', '0', String(AGE_SAMPLE - 1), 'WITHSCORES'),
          ])
          return {
            tracked: count(tracked),
            // What is not acknowledged and does not wait for a later attempt.
            due: Math.max(0, count(queued) - count(later)),
            deadlines: instantsOf(store, key('deadlines'), deadline, ask),
            queuedSince: instantsOf(store, key('queued'), oldest, ask),
          }
        }),
      )
      const sum = (of: (part: (typeof parts)[number]) => number) => parts.reduce((n, part) => n + of(part), 0)
      const deadlines = parts.flatMap((part) => part.deadlines)
      const sample = parts
        .flatMap((part) => part.queuedSince)
        .sort((a, b) => a - b)
        .slice(0, AGE_SAMPLE)
      const [oldest] = sample
      return {
        deployment_id: store.deploymentId,
        mode: 'shared_store',
        tracked_commands: sum((part) => part.tracked),
        due_commands: sum((part) => part.due),
        oldest_deadline_at: deadlines.length === 0 ? null : toTimestamp(Math.min(...deadlines)),
        oldest_queued_age_ms: oldest === undefined ? null : Math.max(0, Math.round(now - oldest)),
        sample_size: sample.length,
        legacy_stream_depth: depths.depth,
        legacy_pending_depth: depths.pending,
        observed_at: toTimestamp(now),
      }
    },

    listNodes: (page, ask) => readPage(store, NODES, {}, page, ask),

    listTenants: (page, ask) => listScopes(store, page, ask),

    async status(given, ask) {
      const read = CommandKey.safeParse(given)
      if (!read.success) throw new Refusal('invalid_identity', 'no command can have these ids')
      requireIdentity(read.data)
      const { user_id, client_id, command_id } = read.data
      const shard = await store.shardOf(user_id, ask)
      const key = store.key(shard, NAME, 'command', user_id, client_id, command_id)
      const [now, values] = await Promise.all([store.time(ask), readIndex(store, ['HMGET', key, ...SHOWN_FIELDS], ask)])
      if (!Array.isArray(values) || values.every((value) => value === null)) return null
      const found = readDeliveryStatus(values)
      if (
        found?.status.user_id !== user_id ||
        found.status.client_id !== client_id ||
        found.status.command_id !== command_id
      ) {
        store.report(new BadRow(`${key} is no record of that command`), ask)
        return null
      }
      return found.untilMs !== null && found.untilMs <= now ? null : found.status
    },
  }
}
