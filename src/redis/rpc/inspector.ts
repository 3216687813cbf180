/** Reads the correlator of a shared store. */
import type { Instance } from '../../contract/connections.js'
import type { Ask } from '../../contract/page.js'
import { foldCall, type RpcInspector } from '../../contract/rpc.js'
import { readCurrentInstance } from '../connections/current-instance.js'
import type { Store } from '../store/store.js'
import { getRecord } from '../table/rows.js'
import { listUserIds, observeUsers } from '../table/users.js'
import { versioned } from '../table/version.js'
import { ALL_CALLS, CALLS } from './format.js'
import { listPending } from './pages.js'
import { readCallSummary } from './summary.js'

type CurrentInstance = (client: Instance, ask: Ask) => Promise<string | null>

/** @param currentInstance Who holds a client. Default: what the connection registry of the deployment says. */
export function createRpcInspector(
  store: Store,
  currentInstance: CurrentInstance = (client, ask) => readCurrentInstance(store, client, ask),
): RpcInspector {
  return {
    ...versioned(store, [CALLS.name]),
    listPending: (filter, page, ask) => listPending(store, filter, page, ask),
    getPending: async (id, ask) => (await getRecord(store, ALL_CALLS, id, ask))?.record ?? null,
    async checkInstance(instance, ask) {
      const current_instance_id = await currentInstance(instance, ask)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    },
    summary: (ask) => readCallSummary(store, ask),
    listUserIds: (page, ask) => listUserIds(store, CALLS.name, page, ask),
    observeUsers: (userIds, ask) => observeUsers(store, CALLS, userIds, ask, foldCall),
  }
}
