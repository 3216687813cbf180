/** The live objects that a node writes to, and the inspectors that look at them: the one place that chooses a store. */
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createRedisFacilities, redisComposition } from 'relayscope/redis'

/** How often clients give a sign of life. */
export const HEARTBEAT_MS = 2_000

/** Short timeouts, so that you see the effect of a fault within seconds. */
const LOST_AFTER_MS = 7_000
const STALE_AFTER_MS = 10_000
const ACK_TIMEOUT_MS = 2_000

const TIMEOUTS = {
  connections: { heartbeatTimeoutMs: LOST_AFTER_MS },
  contexts: { ttlMs: STALE_AFTER_MS },
  browserWindows: { ttlMs: STALE_AFTER_MS },
  dispatcher: { ackTimeoutMs: ACK_TIMEOUT_MS },
}

/**
 * Everything that a node is made of. `store`, `{ url, deploymentId }`, is shared with the other nodes of the deployment;
 * without one it all lives in this process. `newSessionId` names the sessions of cooperative sites.
 */
export function openFacilities({ store, ...node }) {
  return store ? openShared({ ...node, ...store }) : openOwn(node)
}

function openOwn({ nodeId = 'live-host', newSessionId }) {
  const facilities = createMemoryFacilities({ nodeId, ...TIMEOUTS, sessions: { newId: newSessionId } })
  return { facilities, composition: memoryComposition(facilities), close: () => facilities.close() }
}

async function openShared({ nodeId, newSessionId, url, deploymentId }) {
  // The library brings no client: the host does, and it is needed here alone.
  const { createClient } = await import('redis')
  const client = await createClient({ url })
    .on('error', () => {})
    .connect()
  const shared = { client, deploymentId }
  const facilities = createRedisFacilities({ ...shared, nodeId, ...TIMEOUTS, sessions: { newId: newSessionId } })
  return {
    facilities,
    composition: redisComposition(shared),
    async close() {
      await facilities.close()
      client.destroy()
    },
  }
}
