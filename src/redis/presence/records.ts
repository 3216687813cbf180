/** The records of a table whose rows expire unless they are reported: read, changed by the family's rules, and written back. */
import { isLost, PresenceOptions } from '../../internal/contract/contexts.js'
import { readParts } from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { keptMs } from '../../internal/rules/presence.js'
import type { Owner, Records, Step } from '../../internal/rules/records.js'
import { shardOf } from '../store/keys.js'
import { ignoreReply, parseFlag } from '../store/reply.js'
import { defineScript, runInShards, runScript } from '../store/script.js'
import type { Store } from '../store/store.js'
import { createRecords, LOST_OF } from '../table/records.js'
import { scripts } from './presence.lua'
import type { Presence, PresenceTable, Stored } from './table.js'

/** Claims an id in its own shard, where a deployment has several. */
const CLAIM_ID = defineScript(
  'presence.claim',
  { args: ['t', 'id', 'user', 'client', 'ttl', 'attempt'], answer: ignoreReply },
  scripts.claim,
)

/** Releases the claim of a report that was refused, unless another report has claimed it since. */
const UNCLAIM_ID = defineScript(
  'presence.unclaim',
  { args: ['t', 'id', 'attempt'], answer: ignoreReply },
  scripts.unclaim,
)

/** Lets the claim of a closed entry end with its row, unless another report has claimed it since. */
export const LIMIT_CLAIM = defineScript(
  'presence.limit',
  { args: ['t', 'id', 'attempt', 'until_ms'], answer: ignoreReply },
  scripts.limit,
)

/** Deletes expired rows, for the loop of a node. Returns whether there is more. */
export const SWEEP_TABLES = defineScript(
  'presence.sweep',
  { args: [], rest: 'tables', answer: parseFlag, freesMemory: true },
  scripts.sweep,
)

export function presenceRecords<R extends Presence>(
  store: Store,
  table: PresenceTable<R>,
  options: PresenceOptions,
): Records<R> {
  const { ttlMs, maxEntries, maxEntriesPerUser } = readParts(PresenceOptions, options)
  const t = table.name
  const by = crypto.randomUUID().slice(0, 8)
  let calls = 0

  const { read, rowOf, change } = createRecords<R, Stored<R>>(store, {
    table,
    maxEntries,
    maxEntriesPerUser,
    encode({ record, renews }, row, now, sent) {
      const updated_ms = renews || !row ? now : row.updated_ms
      const ttl_ms = renews || !row ? ttlMs : row.ttl_ms
      const names: readonly string[] = ['user_id', ...table.indexes.filter((name) => name !== 'user_id')]
      const index = names.flatMap((name) => {
        const value = record[name as keyof R]
        return typeof value === 'string' ? [[name, String(value)] as const] : []
      })
      if (isLost(record)) index.push([LOST_OF, record.user_id])
      const leaves = updated_ms + keptMs(record, ttl_ms)
      return { row: { ...record, updated_ms, ttl_ms, sent }, index, leaves }
    },
  })

  /** Reports may create a record: their user says in which shard. */
  async function report<A>(id: string, step: Step<R, A>, { user_id, client_id }: Owner): Promise<A> {
    const shards = await store.claimShards()
    const shard = shardOf(user_id, shards)
    const sent = `${by} ${++calls}`
    const claim = { t, id, attempt: sent }
    // In a single shard the row itself is the claim.
    if (shards > 1)
      await runScript(store, CLAIM_ID, shardOf(id, shards), { ...claim, user: user_id, client: client_id, ttl: ttlMs })
    return change(shard, id, step, sent).catch(async (error) => {
      // Otherwise a refused caller could still take ids.
      if (shards > 1 && error instanceof Refusal && error.code === 'capacity_exceeded')
        await runScript(store, UNCLAIM_ID, shardOf(id, shards), claim).catch((lost) => store.onError(lost))
      throw error
    })
  }

  return {
    async change(id, step, owner) {
      if (owner) return report(id, step, owner as Owner)
      const shards = await store.claimShards()
      const now = await store.time()
      const isAlive = (row: Stored<R> | undefined) => row !== undefined && table.read(row, now) !== undefined
      const found = await runInShards(
        (shard) => read(shard, id),
        shards,
        (text) => isAlive(rowOf(id, text)),
      )
      const { shard = 0, answer: text = '' } = found ?? {}
      const sent = rowOf(id, text)?.sent ?? ''
      let closed: R | undefined
      const watched: typeof step = (known, at) => {
        const made = step(known, at)
        closed = made.renews && made.record?.status === 'closed' ? made.record : undefined
        return made
      }
      const answer = await change(shard, id, watched, sent, text)
      if (shards > 1 && closed) {
        // Its id can be reused once the row has left; if this fails, once the claim of its last report ends.
        const given = { t, id, attempt: sent, until_ms: (await store.time()) + keptMs(closed, ttlMs) }
        await runScript(store, LIMIT_CLAIM, shardOf(id, shards), given).catch((lost) => store.onError(lost))
      }
      return answer
    },
  }
}
