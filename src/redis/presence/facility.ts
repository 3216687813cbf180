/** Writes to tables whose rows live by being reported, with ids that are unique in the deployment. */
import { REPORTED_BOUNDS } from '../../contract/contexts.js'
import { resolveBounds } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import type { Reply } from '../store/reply.js'
import { type Bare, runBare, runInShards, unusable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { BadRow, type TableReader, wrongField } from '../table/rows.js'
import { CLAIM, CLOSE, REPORT, UNCLAIM } from './scripts.js'

export interface ReportedOptions {
  /** Silence after which an entry is `stale`, and after as much again leaves; a closed one leaves after one. @default 90000 */
  ttlMs?: number
  /** Entries of any status in one shard; a new one beyond is refused with `capacity_exceeded`. @default 1000000 */
  maxEntries?: number
  /** Entries of one user, of any status. @default a tenth of `maxEntries`, at least 2 */
  maxEntriesPerUser?: number
}

interface Owner {
  user_id: string
  client_id: string
}

export function createReported(store: Store, table: string, indexed: string, options: ReportedOptions) {
  const { ttlMs, maxEntries, maxEntriesPerUser } = resolveBounds(options, REPORTED_BOUNDS)

  const by = crypto.randomUUID().slice(0, 8)
  let sent = 0

  /** Runs `script` in every shard, of which one at most knows the id, and answers what that one said. */
  async function inEveryShard(script: Bare, id: string, ...args: string[]): Promise<Reply> {
    const run = (shard: number) => runBare(store, script, shard, table, id, ...args)
    const found = await runInShards(run, await store.claimShards(), (reply) => reply !== null && reply !== 0)
    return found?.answer ?? null
  }

  return {
    inEveryShard,

    /**
     * Reports `fields`, of which scripts know, and a `body` of which they do not.
     *
     * @throws Refusal `identity_conflict`, `capacity_exceeded`, `unavailable`.
     */
    async report(id: string, fields: Owner & Record<string, unknown>, body: object = {}): Promise<Reply> {
      const order = ++sent
      const shards = await store.claimShards()
      const { user_id, client_id } = fields
      const state = JSON.stringify({ ...fields, sent: `${by} ${order}` })
      const args = [state, JSON.stringify(body), ttlMs, maxEntriesPerUser, maxEntries, indexed]
      const run = () => runBare(store, REPORT, shardOf(user_id, shards), table, id, ...args)
      // In a single shard the row is the claim.
      if (shards === 1) return run()
      const attempt = crypto.randomUUID()
      await runBare(store, CLAIM, shardOf(id, shards), table, id, user_id, client_id, ttlMs, attempt)
      return run().catch(async (error) => {
        // Or whoever is refused would go on taking ids. Then nothing of his has it, whichever of his attempts claimed it.
        if (error instanceof Refusal && error.code === 'capacity_exceeded')
          await runBare(store, UNCLAIM, shardOf(id, shards), table, id, attempt).catch((lost) => store.report(lost))
        throw error
      })
    },

    async close(id: string, change: object): Promise<boolean> {
      return (await inEveryShard(CLOSE, id, JSON.stringify(change), crypto.randomUUID())) !== null
    },
  }
}

/** The record that a script has just written, as it read when it was written. @throws Refusal `unavailable` for none. */
export function toRecord<R extends object, S extends object>(store: Store, table: TableReader<R, S>, reply: Reply): R {
  const [state, now, body] = Array.isArray(reply) ? reply : []
  // What a row had before its report stays in it, whoever wrote that.
  const row = table.schema.safeParse({ ...JSON.parse(String(state)), ...JSON.parse(String(body)) })
  if (!row.success) throw unusable(store, new BadRow(`a row of ${table.name} has a wrong ${wrongField(row.error)}`))
  const record = table.read(row.data, Number(now))
  if (record === undefined) throw new Refusal('unavailable', 'the store answered a row that is gone')
  return record
}
