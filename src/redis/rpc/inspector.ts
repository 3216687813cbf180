/** Reads the correlator of a shared store. */
import type * as z from 'zod'
import type { Instance } from '../../contract/connections.js'
import type { Ask } from '../../contract/page.js'
import { PendingCall, type RpcInspector, tellCall } from '../../contract/rpc.js'
import { readCurrentInstance } from '../connections/current-instance.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { getRecord, type TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'
import { listUserIds, observeUsers } from '../table/users.js'

const StoredCall = PendingCall.omit({ age_ms: true }).extend({ started_at: Millis, deadline_at: Millis })

const CALLS: TableReader<PendingCall, z.infer<typeof StoredCall>> = {
  name: 'calls',
  idOf: ({ correlation_id }) => correlation_id,
  schema: StoredCall,
  indexes: ['user_id'],
  read({ started_at, deadline_at, ...row }, now) {
    // The node that opened it has died: a living one takes its call away.
    if (deadline_at <= now) return undefined
    return {
      ...row,
      started_at: timestampOf(started_at),
      deadline_at: timestampOf(deadline_at),
      age_ms: Math.max(0, now - started_at),
    }
  },
}

type CurrentInstance = (client: Instance, ask: Ask) => Promise<string | null>

/** @param currentInstance Who holds a client. Default: what the connection registry of the deployment says. */
export function createRpcInspector(
  store: Store,
  currentInstance: CurrentInstance = (client, ask) => readCurrentInstance(store, client, ask),
): RpcInspector {
  return {
    listPending: (filter, page, ask) => readPage(store, CALLS, filter, page, ask),
    getPending: async (id, ask) => (await getRecord(store, CALLS, id, ask))?.record ?? null,
    async checkInstance(instance, ask) {
      const current_instance_id = await currentInstance(instance, ask)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    },
    listUserIds: (page, ask) => listUserIds(store, CALLS.name, page, ask),
    observeUsers: (userIds, ask) => observeUsers(store, CALLS, userIds, ask, tellCall),
  }
}
