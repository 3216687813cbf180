/** Writes to tables whose rows expire unless they are reported, with ids that are unique in the deployment. */
import { PresenceOptions } from '../../contract/contexts.js'
import { readParts } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { count, ignoreReply, parseFlag, type StoreReply } from '../store/reply.js'
import { defineScript, runInShards, runScript, type Script, toUnavailable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { BadRow, faultOfRow, type TableReader } from '../table/rows.js'
import { scripts } from './presence.lua'

// The scripts of tables whose rows expire unless they are reported: contexts and browser windows.

/** A row: the fields that scripts know, the time, and the other fields; both as JSON. */
export interface Shown {
  state: string
  now: number
  body: string
}

/** Returns the row after the write, or `null`. */
const readShown = (reply: StoreReply): Shown | null => {
  if (!Array.isArray(reply)) return null
  const [state, now, body] = reply
  return { state: String(state), now: Number(now), body: String(body) }
}

/**
 * Inserts or updates a row. `fields`: those that scripts know; `content`: the body; `indexed`: a field with its own
 * index, or ''. `sent` in a row is the last reporter and its sequence number: a repeated or outdated report changes
 * nothing.
 */
export const REPORT_ENTRY = defineScript(
  'presence.report',
  {
    args: ['t', 'id', 'fields', 'content', 'ttl', 'max_per_user', 'max_entries', 'indexed'],
    answer: readShown,
  },
  scripts.report,
)

/** When a closed entry expires, and the `sent` of its last report. */
interface Closed {
  leaves: number
  sent: string
}

/** Closes an entry. `change`: the fields that closing changes. Returns `null` if there is none to close. */
export const CLOSE_ENTRY = defineScript(
  'presence.close',
  {
    args: ['t', 'id', 'change', 'attempt'],
    answer: (reply): Closed | null => {
      if (!Array.isArray(reply)) return null
      const [leaves = null, sent] = reply
      return { leaves: count(leaves), sent: String(sent) }
    },
  },
  scripts.close,
)

export const ASSIGN_TASK = defineScript(
  'presence.assign',
  { args: ['t', 'id', 'task', 'attempt'], answer: readShown },
  scripts.assign,
)

export const RELEASE_TASK = defineScript(
  'presence.release',
  { args: ['t', 'id', 'attempt'], answer: readShown },
  scripts.release,
)

/** Claims an id in its own shard, where a deployment has several. `attempt`: the `sent` of the report. */
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

/** Shortens the claim of a closed entry, unless another report has claimed it since. */
export const SHORTEN_CLAIM = defineScript(
  'presence.shorten',
  { args: ['t', 'id', 'attempt', 'until_ms'], answer: ignoreReply },
  scripts.shorten,
)

interface Owner {
  user_id: string
  client_id: string
}

export function createPresence(store: Store, table: string, indexed: string, options: PresenceOptions) {
  const { ttlMs, maxEntries, maxEntriesPerUser } = readParts(PresenceOptions, options)

  const by = crypto.randomUUID().slice(0, 8)
  let sent = 0

  /** Runs `script` in every shard, of which at most one has the entry, and returns that one's result. */
  async function inEveryShard<Given, Answer>(
    script: Script<Given, Answer>,
    given: Given,
    isFound: (answer: Answer) => boolean,
  ): Promise<Answer | undefined> {
    const run = (shard: number) => runScript(store, script, shard, given)
    return (await runInShards(run, await store.claimShards(), isFound))?.answer
  }

  return {
    /** Runs a script that returns the changed entry, or `null` if there is none. */
    async change<Given>(script: Script<Given, Shown | null>, given: Given): Promise<Shown | null> {
      return (await inEveryShard(script, given, (shown) => shown !== null)) ?? null
    },

    /**
     * Reports an entry: `fields` are known to scripts, `body` is not.
     *
     * @throws Refusal `identity_conflict`, `capacity_exceeded`, `unavailable`.
     */
    async report(id: string, fields: Owner & Record<string, unknown>, body: object = {}): Promise<Shown | null> {
      const attempt = `${by} ${++sent}`
      const shards = await store.claimShards()
      const { user_id, client_id } = fields
      const state = JSON.stringify({ ...fields, sent: attempt })
      const bounds = { ttl: ttlMs, max_per_user: maxEntriesPerUser, max_entries: maxEntries }
      const given = { t: table, id, fields: state, content: JSON.stringify(body), indexed, ...bounds }
      const run = () => runScript(store, REPORT_ENTRY, shardOf(user_id, shards), given)
      // In a single shard the row itself is the claim.
      if (shards === 1) return run()
      const claim = { t: table, id, attempt }
      const own = { user: user_id, client: client_id, ttl: ttlMs }
      await runScript(store, CLAIM_ID, shardOf(id, shards), { ...claim, ...own })
      return run().catch(async (error) => {
        // Otherwise a refused caller could still take ids. None of its entries has the id then, whichever attempt
        // claimed it.
        if (error instanceof Refusal && error.code === 'capacity_exceeded')
          await runScript(store, UNCLAIM_ID, shardOf(id, shards), claim).catch((lost) => store.onError(lost))
        throw error
      })
    },

    async close(id: string, change: object): Promise<boolean> {
      const given = { t: table, id, change: JSON.stringify(change), attempt: crypto.randomUUID() }
      const closed = await inEveryShard(CLOSE_ENTRY, given, (answer) => answer !== null)
      if (!closed) return false
      const shards = await store.claimShards()
      // Otherwise the id could not be reused for a while after the entry expired. The entry is closed even if this
      // fails.
      const claim = { t: table, id, attempt: closed.sent, until_ms: closed.leaves }
      if (shards > 1)
        await runScript(store, SHORTEN_CLAIM, shardOf(id, shards), claim).catch((lost) => store.onError(lost))
      return true
    },
  }
}

/**
 * Returns the record that a script has just written, as of the time of the write. @throws Refusal `unavailable` if
 * there is none.
 */
export function toRecord<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shown: Shown | null,
): R {
  // A row keeps fields that were stored before the report.
  const row = shown && table.schema.safeParse({ ...JSON.parse(shown.state), ...JSON.parse(shown.body) })
  if (!row) throw toUnavailable(store, new BadRow(`no row in the reply of a write to ${table.name}`))
  if (!row.success)
    throw toUnavailable(store, new BadRow(`invalid row after a write to ${table.name}: ${faultOfRow(row.error).text}`))
  const record = table.read(row.data, shown.now)
  if (record === undefined)
    throw new Refusal('unavailable', `the row written to ${table.name} had already expired by the clock of the store`)
  return record
}

// Deletes expired rows from the tables of a shard, for the loop of a node.

/** Returns whether there is more. */
export const SWEEP_TABLES = defineScript(
  'presence.sweep',
  { args: [], rest: 'tables', answer: parseFlag, freesMemory: true },
  scripts.sweep,
)
