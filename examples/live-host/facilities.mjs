/** The live objects that the host writes to, and the inspectors that look at them: the one place that chooses a store. */
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

/** How often clients give a sign of life. */
export const HEARTBEAT_MS = 2_000

/** Everything is quick here, so that whoever breaks something sees it within seconds, not minutes. */
const LOST_AFTER_MS = 7_000
const STALE_AFTER_MS = 10_000
const ACK_TIMEOUT_MS = 2_000

export function openFacilities() {
  const facilities = createMemoryFacilities({
    nodeId: 'live-host',
    connections: { heartbeatTimeoutMs: LOST_AFTER_MS },
    contexts: { ttlMs: STALE_AFTER_MS },
    browserWindows: { ttlMs: STALE_AFTER_MS },
    dispatcher: { ackTimeoutMs: ACK_TIMEOUT_MS },
  })
  return { facilities, composition: memoryComposition(facilities) }
}
