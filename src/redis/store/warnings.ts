/** Warns about a store that can lose what is written, and about a Cluster of which the deployment uses only a part. */
import { runWithin } from '../../internal/async/deadline.js'
import type { SourceWarning } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { portOf } from './client.js'
import type { Store } from './store.js'

/** A setting of the store that an operator should change. Everything works until it has an effect. */
export class StoreWarning extends Error {
  override readonly name = 'StoreWarning'
}

const fieldOf = (info: string, name: string) => new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1]

/** Reads `INFO` of every master. @throws if the store is down or does not allow it. */
async function readWarnings(store: Store): Promise<SourceWarning[]> {
  const port = portOf(store.client)
  await port.ready()
  const infos = (await port.sendToMasters(['INFO'])).map(String)
  const warnings: SourceWarning[] = []
  const policies = new Set(infos.map((info) => fieldOf(info, 'maxmemory_policy')))
  policies.delete('noeviction')
  policies.delete(undefined)
  const evicted = infos.reduce((sum, info) => sum + (Number(fieldOf(info, 'evicted_keys')) || 0), 0)
  if (policies.size > 0)
    warnings.push({
      code: 'store_evicts',
      detail: `The store evicts keys when it is full (maxmemory-policy ${[...policies].join(', ')}; evicted so far: ${evicted}). Evicted records are missing in answers that say they are complete. Set maxmemory-policy to noeviction.`,
    })
  if (infos.some((info) => fieldOf(info, 'aof_enabled') === '0'))
    warnings.push({
      code: 'store_not_persistent',
      detail:
        'A restart of the store loses what was written since its last snapshot, if there is one. Set appendonly to yes if that must not happen.',
    })
  const shards = infos.length > 1 ? await store.shards() : infos.length
  if (shards < infos.length)
    warnings.push({
      code: 'shards_unevenly_spread',
      detail: `The deployment has ${shards} ${shards === 1 ? 'shard' : 'shards'}, and the Cluster has ${infos.length} masters: some masters hold none of its data. Set \`shards\`, for example to ${3 * infos.length}, before the first record of a deployment.`,
    })
  return warnings
}

/** How long warnings are remembered, in ms: settings change rarely, and all sources of a store ask together. */
const REMEMBERED_MS = 10_000
/** Timeout of reading them, in ms: less than what one source may take in a request. */
const WARNINGS_MS = 900

/**
 * Returns a reader of the warnings of a store, for inspectors: it reads them once for all requests of some seconds. They are
 * `null` if the store is down or does not allow `INFO`.
 */
export function createWarningReader(store: Store): () => Promise<readonly SourceWarning[] | null> {
  const late = () => new Refusal('unavailable')
  let readAt = Number.NEGATIVE_INFINITY
  let known: Promise<readonly SourceWarning[] | null> = Promise.resolve(null)
  return () => {
    if (performance.now() - readAt < REMEMBERED_MS) return known
    readAt = performance.now()
    known = runWithin(() => readWarnings(store), { ms: Math.min(store.commandTimeoutMs, WARNINGS_MS), late }).catch(
      () => null,
    )
    return known
  }
}

/**
 * Calls `onError` with a `StoreWarning` for each setting that needs a change in most deployments, once the client is connected.
 * Never rejects.
 */
export async function warnAboutStore(store: Store): Promise<void> {
  // A store that does not allow INFO: requests report what does not work.
  for (const { code, detail } of await readWarnings(store).catch(() => []))
    if (code !== 'store_not_persistent') store.onError(new StoreWarning(detail))
}
