/** Reads the sessions of a shared store. */
import type { Ask } from '../../contract/page.js'
import type { SessionInspector } from '../../contract/sessions.js'
import type { SiteKey } from '../../contract/sites.js'
import { shardOf } from '../store/keys.js'
import { count, listOf, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { readListed, tellBad } from '../table/listed.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { readIndex } from '../table/rows.js'
import { allShards, readShards } from '../table/shards.js'
import { versioned } from '../table/version.js'
import { ROW_FIELDS, readSessionRow, SESSIONS } from './format.js'

// `sites` are an owner and a site, again and again.
const OPEN_AT = defineReadScript(
  { args: ['at'], rest: 'sites', answer: ([counts]) => listOf(counts).map(count) },
  `
local counts = {}
for i = 1, #sites, 2 do
  counts[#counts + 1] = read('ZCOUNT', K('sessions', 'at', sites[i], sites[i + 1]), '(' .. at, '+inf') or 0
end
return { foreign, counts }`,
)

/** One read a shard, whatever the number of sites: sessions are in the shards of their own ids. */
async function countSessions(store: Store, sites: readonly SiteKey[], ask: Ask): Promise<(number | null)[]> {
  const at = await store.time(ask)
  const keys = sites.flatMap(({ owner, site_id }) => [owner, site_id])
  const { answers, truncated } = await readShards(await allShards(store, ask), ask, (shard) =>
    readShard(store, OPEN_AT, shard, { at, sites: keys }, ask),
  )
  // What a shard that is lost holds may be of any site.
  return sites.map((_, i) => (truncated ? null : answers.reduce((sum, counts) => sum + (counts[i] ?? 0), 0)))
}

export function createSessionInspector(store: Store): SessionInspector {
  return {
    ...versioned(store, [SESSIONS.name]),
    listSessions: (filter, page, ask) => readListed(store, SESSIONS, filter, page, ask),
    async getSession(sessionId, ask) {
      const [shards, now] = await Promise.all([store.shards(ask), store.time(ask)])
      const shard = shardOf(sessionId, shards)
      const key = store.key(shard, SESSIONS.name, SESSIONS.kind, sessionId)
      const ends = store.key(shard, SESSIONS.name, 'share-ends', sessionId)
      const [values, shares, next] = await Promise.all([
        readIndex(store, ['HMGET', key, ...ROW_FIELDS], ask),
        readIndex(store, ['ZCOUNT', ends, `(${now}`, '+inf'], ask),
        readIndex(store, ['ZRANGE', ends, `(${now}`, '(+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES'], ask),
      ])
      const row = readSessionRow(sessionId, { values, shares, nextEnd: scored(next)[0]?.score ?? null }, now)
      if (row === undefined) tellBad(store, key, sessionId, ask)
      return row ?? null
    },
    countSessions: (sites, ask) => countSessions(store, sites, ask),
  }
}
