/** Reads the dispatcher of a shared store: counts, nodes, scopes and single records, never a payload. */
import { CommandKey, type DeliveryInspector } from '../../contract/delivery.js'
import { expiredAt, requireIdentity } from '../../contract/delivery-rules.js'
import { Refusal } from '../../refusal.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { versioned } from '../table/shards.js'
import { readDeliveryChurn } from './churn.js'
import { listCommands } from './commands.js'
import type { LegacyStream } from './legacy.js'
import { CHUNK } from './library.js'
import { listMailboxes } from './mailbox-list.js'
import { NODES } from './nodes.js'
import { RECORD_TEXT_BYTES, readRecord, refOf, withRecords } from './record.js'
import { getScope, listScopes } from './scopes.js'
import statusLua from './status.lua'
import { readSummary } from './summary.js'

const NAME = 'delivery'

const STATUS = defineReadScript(
  {
    args: ['ref', 'at'],
    constants: { CHUNK, RECORD_BYTES: RECORD_TEXT_BYTES },
    answer: ([record = null]) => record,
  },
  withRecords(statusLua),
)

/** @param legacy An older command stream to include in the summary. */
export function createDeliveryInspector(store: Store, legacy: LegacyStream | undefined = undefined): DeliveryInspector {
  return {
    ...versioned(store, [NAME]),
    summary: (ctx) => readSummary(store, legacy, ctx),

    listNodes: (page, ctx) => readPage(store, NODES, {}, page, ctx),

    deliveryChurn: (filter, ctx) => readDeliveryChurn(store, filter, ctx),

    listCommands: (filter, page, ctx) => listCommands(store, filter, page, ctx),

    listMailboxes: (filter, page, ctx) => listMailboxes(store, filter, page, ctx),

    listTenants: (page, ctx) => listScopes(store, page, ctx),

    getTenant: (scopeId, ctx) => getScope(store, scopeId, ctx),

    async status(given, ctx) {
      const read = CommandKey.safeParse(given)
      if (!read.success) throw new Refusal('invalid_identity', 'the ids are malformed')
      requireIdentity(read.data)
      const { user_id, client_id, command_id } = read.data
      const shard = await store.shardOf(user_id, ctx)
      const key = store.key(shard, NAME, 'command', user_id, client_id, command_id)
      const asked = { ref: refOf(read.data), at: 0 }
      const [now, record] = await Promise.all([store.time(ctx), readShard(store, STATUS, shard, asked, ctx)])
      if (record === '') return null
      const found = readRecord(record, read.data)
      if (!found) {
        store.onError(new BadRow(`${key} should hold the record of a command, and holds something else`), ctx)
        return null
      }
      return found.untilMs !== null && found.untilMs <= now ? null : expiredAt(found.status, now)
    },
  }
}
