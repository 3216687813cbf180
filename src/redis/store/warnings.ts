/** Warns about a store that can lose what is written, and about a Cluster of which the deployment uses only a part. */
import { portOf } from './client.js'
import type { Store } from './store.js'

/** A setting of the store that an operator should change. Everything works until it has an effect. */
export class StoreWarning extends Error {
  override readonly name = 'StoreWarning'
}

const fieldOf = (info: string, name: string) => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1]

/** Reads `INFO` of every master, and calls `onError` with one `StoreWarning` for each wrong setting. Never rejects. */
export async function warnAboutStore(store: Store): Promise<void> {
  try {
    const port = portOf(store.client)
    await port.ready()
    const infos = (await port.sendToMasters(['INFO'])).map(String)
    const policies = new Set(infos.map((info) => fieldOf(info, 'maxmemory_policy')))
    policies.delete('noeviction')
    policies.delete(undefined)
    const evicted = infos.reduce((sum, info) => sum + (Number(fieldOf(info, 'evicted_keys')) || 0), 0)
    if (policies.size > 0)
      store.onError(
        new StoreWarning(
          `The store evicts keys when it is full (maxmemory-policy ${[...policies].join(', ')}; evicted so far: ${evicted}). Evicted records are missing in answers that say they are complete. Set maxmemory-policy to noeviction.`,
        ),
      )
    const shards = infos.length > 1 ? await store.shards() : infos.length
    if (shards < infos.length)
      store.onError(
        new StoreWarning(
          `The deployment has ${shards} ${shards === 1 ? 'shard' : 'shards'}, and the Cluster has ${infos.length} masters: some masters hold none of its data. Set \`shards\`, for example to ${3 * infos.length}, before the first record of a deployment.`,
        ),
      )
  } catch {
    // The store is down or does not allow INFO. Requests report what does not work.
  }
}
