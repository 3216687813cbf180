/** Worlds larger than any bound: one record that a facility has written, copied by the store itself. */
import type { CommandKey } from '../../src/internal/contract/delivery.js'
import claimsLua from '../../src/redis/deduplicator/claims.lua'
import { BUCKET_MS, CHUNK } from '../../src/redis/delivery/library.js'
import { withRecords } from '../../src/redis/delivery/record.js'
import fairShareLua from '../../src/redis/store/fair-share.lua'
import { shardOf } from '../../src/redis/store/keys.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore, type Store } from '../../src/redis/store/store.js'
import type { Place } from './matrix.js'

/** Part of the ids of a record that is copied; each copy has its own number there. */
export const MARK = 'tpl00000'

/** Copies of one script: some hundred milliseconds of the store. */
const BATCH = 5_000

// ARGV: 1 table, 2 id, 3 user, 4 row, 5 expiry time, 6… numbers; in each copy its number replaces the mark.
const COPY = `
local prefix, t = KEYS[1], ARGV[1]
local function encode(part)
  return (string.gsub(part, '[^A-Za-z0-9_-]', function(c) return string.format('%%%02X', string.byte(c)) end))
end
local seq = redis.call('INCRBY', prefix .. t .. ':seq', #ARGV - 5) - (#ARGV - 5)
for i = 6, #ARGV do
  local number = string.format('tpl%05d', ARGV[i])
  local function own(text) return (string.gsub(text, '${MARK}', number)) end
  local id, user = own(ARGV[2]), own(ARGV[3])
  seq = seq + 1
  redis.call('SET', prefix .. t .. ':row:' .. encode(id), (string.gsub(own(ARGV[4]), '"seq":%d+', '"seq":' .. seq)))
  redis.call('ZADD', prefix .. t .. ':all', seq, id)
  redis.call('ZADD', prefix .. t .. ':user_id:' .. encode(user), seq, id)
  redis.call('ZADD', prefix .. t .. ':users', 0, user)
  redis.call('ZADD', prefix .. t .. ':leaves', ARGV[5], id)
  redis.call('ZADD', prefix .. t .. ':live:' .. encode(user), ARGV[5], id)
end
return seq`

const SCOPES = `
local prefix = KEYS[1] .. 'delivery:'
for i = 2, #ARGV do
  local scope = string.format('a-%05d', ARGV[i])
  redis.call('ZADD', prefix .. 'scope-order', redis.call('INCR', prefix .. 'scope-seq'), scope)
  redis.call('HSET', prefix .. 'scopes', scope, 1)
  redis.call('HSET', prefix .. 'reserved:' .. scope, 'a:c:d', ARGV[1] .. ' x ')
end
return 1`

// ARGV: 1 user, 2 client, 3 command, 4 scope, 5 deadline or '', 6 the record without its payload, 7… numbers.
const COMMANDS = withRecords(`
local prefix = KEYS[1] .. 'delivery:'
local last, stamp = string.match(redis.call('GET', prefix .. 'seq') or '0 0', '^(%d+) (%d+)$')
local seq = tonumber(last)
for i = 7, #ARGV do
  local number = string.format('tpl%05d', ARGV[i])
  local function own(text) return (string.gsub(text, '${MARK}', number)) end
  local user, client, id, scope = own(ARGV[1]), own(ARGV[2]), own(ARGV[3]), own(ARGV[4])
  seq, stamp = seq + 1, stamp + 1
  local c = { user .. ':' .. client .. ':' .. id, '', struct.unpack({{RECORD}}, ARGV[6]) }
  c.scope, c.seq, c.stamp = scope, string.format('%d', seq), string.format('%d', stamp)
  local k = math.floor((seq - 1) / ${CHUNK})
  if seq == k * ${CHUNK} + 1 then redis.call('ZADD', prefix .. 'starts', c.stamp, k) end
  redis.call('RPUSH', prefix .. 'log:' .. k, c.ref)
  redis.call('APPEND', prefix .. 'states:' .. k, c.state)
  redis.call('RPUSH', prefix .. 'of:' .. user, c.seq)
  redis.call('RPUSH', prefix .. 'of:' .. scope, c.seq)
  if ARGV[5] ~= '' then
    redis.call('HINCRBY', prefix .. 'counts', c.state, 1)
    c.deadline_at = ARGV[5]
    local b = math.floor(ARGV[5] / ${BUCKET_MS})
    redis.call('RPUSH', prefix .. 'due:' .. b, c.seq)
    redis.call('ZADD', prefix .. 'due', (b + 1) * ${BUCKET_MS} - 1, b)
  end
  redis.call('SET', prefix .. 'command:' .. c.ref, {{RECORD_TEXT}})
end
redis.call('SET', prefix .. 'seq', string.format('%d %d', seq, stamp))
return seq`)

// ARGV: 1 site, 2 owner, 3 its record or '' for none, 4… numbers; in each copy its number replaces the mark.
const SITES = `
local prefix = KEYS[1] .. 'sites:'
for i = 4, #ARGV do
  local number = string.format('tpl%05d', ARGV[i])
  local function own(text) return (string.gsub(text, '${MARK}', number)) end
  local id, seq = own(ARGV[1]), redis.call('INCR', prefix .. 'seq')
  if ARGV[3] ~= '' then
    redis.call('SET', prefix .. 'row:' .. id, (string.gsub(own(ARGV[3]), '"seq":%d+', '"seq":' .. seq)))
    redis.call('ZADD', prefix .. 'leaves', '+inf', id)
    redis.call('ZADD', prefix .. 'live:' .. ARGV[2], '+inf', id)
  end
  redis.call('ZADD', prefix .. 'all', seq, id)
  redis.call('ZADD', prefix .. 'owner:' .. ARGV[2], seq, id)
end
return 1`

// ARGV: 1 session, 2 its record, 3 owner, 4 site, 5 when it expires or '+inf', 6… numbers; as above.
const SESSIONS = `
local prefix = KEYS[1] .. 'sessions:'
for i = 6, #ARGV do
  local id = (string.gsub(ARGV[1], '${MARK}', string.format('tpl%05d', ARGV[i])))
  local seq, row = redis.call('INCR', prefix .. 'seq'), string.gsub(ARGV[2], '"session_id":"[^"]*"', '"session_id":"' .. id .. '"')
  redis.call('SET', prefix .. 'row:' .. id, (string.gsub(row, '"seq":%d+', '"seq":' .. seq)))
  for _, list in ipairs({ 'all', 'owner:' .. ARGV[3], 'site_id:' .. ARGV[4] }) do
    redis.call('ZADD', prefix .. list, seq, id)
  end
  redis.call('ZADD', prefix .. 'at:' .. ARGV[3] .. ':' .. ARGV[4], ARGV[5], id)
end
return 1`

const FILL = defineScript(
  'test.fill',
  { args: ['user', 'messages', 'ttl', 'capacity'], answer: (reply) => reply },
  `${fairShareLua}${claimsLua}
for i = 1, tonumber(messages) do claim(user, 'm' .. i, tonumber(ttl), tonumber(capacity)) end`,
)

/**
 * Yields the numbers from 1 to `count` by the shard of the user that `userOf` returns; the first shard if there is
 * none.
 */
async function* batches(store: Store, count: number, userOf: (number: string) => string) {
  const shards = await store.shards()
  const byShard = new Map<number, number[]>()
  for (let i = 1; i <= count; i++) {
    const user = userOf(`tpl${String(i).padStart(5, '0')}`)
    const shard = user === '' ? 0 : shardOf(user, shards)
    const numbers = byShard.get(shard) ?? []
    byShard.set(shard, numbers)
    numbers.push(i)
  }
  for (const [shard, numbers] of byShard)
    for (let from = 0; from < numbers.length; from += BATCH) yield { shard, some: numbers.slice(from, from + BATCH) }
}

const run = (store: Store, script: string, shard: number, ...args: (string | number)[]) =>
  store.command(['EVAL', script, '1', store.key(shard), ...args.map(String)], store.key(shard))

/**
 * Creates `count` copies of the record that `table` has under `id` for `user` (or no user), of which at least one
 * contains the mark.
 */
export async function copyRow(place: Place, table: string, id: string, user: string, count: number): Promise<void> {
  const store = createStore({ ...place, commandTimeoutMs: 30_000 })
  const home = user === '' ? 0 : await store.shardOf(user)
  const row = await store.command(['GET', store.key(home, table, 'row', id)], store.key(home))
  const leaves = await store.command(['ZSCORE', store.key(home, table, 'leaves'), id], store.key(home))
  if (typeof row !== 'string') throw new Error(`${table} has no ${id}`)
  for await (const { shard, some } of batches(store, count, (number) => user.replaceAll(MARK, number)))
    await run(store, COPY, shard, table, id, user, row, String(leaves), ...some)
}

/** Creates `count` copies of a site, or as many list entries without a site. Ids must need no encoding. */
export async function copySites(
  place: Place,
  site: { site_id: string; owner: string },
  count: number,
  isThere: boolean,
) {
  const store = createStore({ ...place, commandTimeoutMs: 30_000 })
  const { site_id, owner } = site
  const key = store.key(await store.shardOf(site_id), 'sites', 'row', site_id)
  const record = isThere ? String(await store.command(['GET', key], key)) : ''
  for await (const { shard, some } of batches(store, count, (number) => site_id.replace(MARK, number)))
    await run(store, SITES, shard, site_id, owner, record, ...some)
}

/** Creates `count` copies of a session, which expired at `expiresAt` if given. Ids must need no encoding. */
export async function copySessions(place: Place, session_id: string, count: number, expiresAt: number | null = null) {
  const store = createStore({ ...place, commandTimeoutMs: 30_000 })
  const key = store.key(await store.shardOf(session_id), 'sessions', 'row', session_id)
  const [state, content = ''] = String(await store.command(['GET', key], key)).split('\n')
  const expires_at = expiresAt === null ? null : new Date(expiresAt).toISOString()
  const session = { ...JSON.parse(content), expires_at }
  const given = [`${state}\n${JSON.stringify(session)}`, session.owner, session.site_id, expiresAt ?? '+inf']
  for await (const { shard, some } of batches(store, count, (number) => session_id.replace(MARK, number)))
    await run(store, SESSIONS, shard, session_id, ...given, ...some)
}

/** Creates `count` scopes whose single reservation expired by `deadline`. */
export async function plantScopes(place: Place, count: number, deadline: number): Promise<void> {
  const store = createStore({ ...place, commandTimeoutMs: 30_000 })
  for await (const { shard, some } of batches(store, count, (number) => number.replace('tpl', 'a-')))
    await run(store, SCOPES, shard, deadline, ...some)
}

/**
 * Makes `count` more of a command where it stands, in the lists, and with a `deadline` in the buckets of deadlines:
 * no loop ends those without one or forgets them. Ids are plain words.
 */
export async function copyCommand(
  place: Place,
  of: CommandKey & { scope_id: string },
  count: number,
  deadline: number | '' = '',
) {
  const store = createStore({ ...place, commandTimeoutMs: 30_000 })
  const { user_id, client_id, command_id, scope_id } = of
  const key = store.key(await store.shardOf(user_id), 'delivery', 'command', user_id, client_id, command_id)
  const record = String(await store.command(['GET', key], key))
  for await (const { shard, some } of batches(store, count, (number) => user_id.replaceAll(MARK, number)))
    await run(store, String(COMMANDS), shard, user_id, client_id, command_id, scope_id, deadline, record, ...some)
}

/** Claims `count` messages of `user` in one step. */
export async function fillDeduplicator(
  place: Place & { now: () => number },
  user: string,
  count: number,
  bounds: { ttl: number; capacity: number },
): Promise<void> {
  const store = createStore({ ...place, commandTimeoutMs: 30_000 })
  await runScript(store, FILL, await store.shardOf(user), { user, messages: count, ...bounds })
}
