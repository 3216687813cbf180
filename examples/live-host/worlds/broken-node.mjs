/** One node of the world `broken`, and the clients of it. */
import { createClient } from 'redis'
import { createRedisFacilities } from 'relayscope/redis'

export const DEPLOYMENT = 'broken'
/** How many open commands one scope may have. */
export const CAPACITY = 20
const KEPT_MS = 900_000

export const clientOf = (user_id, client_id, client_type = 'web') => ({
  user_id,
  client_id,
  instance_id: `${client_id}-${crypto.randomUUID().slice(0, 8)}`,
  client_type,
})

export async function openNode(url, nodeId) {
  const client = await createClient({ url })
    .on('error', () => {})
    .connect()
  const facilities = createRedisFacilities({
    client,
    deploymentId: DEPLOYMENT,
    nodeId,
    // Long enough that what the dead node holds can be looked at.
    connections: { heartbeatTimeoutMs: KEPT_MS },
    browserWindows: { ttlMs: KEPT_MS },
    contexts: { ttlMs: KEPT_MS },
    dispatcher: { ackTimeoutMs: 2_000, capacity: CAPACITY },
  })
  return { client, facilities }
}
