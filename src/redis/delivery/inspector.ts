/** Reads the dispatcher of a shared store: counts, nodes, scopes and single records, never a payload. */
import { CommandKey, type DeliveryInspector } from '../../contract/delivery.js'
import { expiredAt, requireIdentity } from '../../contract/delivery-rules.js'
import { Refusal } from '../../refusal.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { BadRow, readIndex } from '../table/rows.js'
import { versioned } from '../table/version.js'
import { readDeliveryChurn } from './churn.js'
import { listCommands } from './commands.js'
import { RECORD_TEXT_BYTES, readDeliveryStatus } from './format.js'
import type { LegacyStream } from './legacy.js'
import { listMailboxes } from './mailbox-list.js'
import { NODES } from './nodes.js'
import { getScope, listScopes } from './scopes.js'
import { readSummary } from './summary.js'

const NAME = 'delivery'

/** @param legacy An older command stream to look at besides. */
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
      if (!read.success) throw new Refusal('invalid_identity', 'no command can have these ids')
      requireIdentity(read.data)
      const { user_id, client_id, command_id } = read.data
      const shard = await store.shardOf(user_id, ctx)
      const key = store.key(shard, NAME, 'command', user_id, client_id, command_id)
      // What is longer was not written by us, and its beginning says so.
      const range = ['GETRANGE', key, '0', String(RECORD_TEXT_BYTES)]
      const [now, record] = await Promise.all([store.time(ctx), readIndex(store, range, ctx)])
      if (typeof record !== 'string' || record === '') return null
      const found = readDeliveryStatus(record, read.data)
      if (!found) {
        store.onError(new BadRow(`${key} should hold the record of a command, and holds something else`), ctx)
        return null
      }
      return found.untilMs !== null && found.untilMs <= now ? null : expiredAt(found.status, now)
    },
  }
}
