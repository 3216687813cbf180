/** The scripts of a node: its waiters, its lease, the reconciliation of a shard, and its entry in the list of nodes. */
import { NODE_KEPT_MS } from '../observe/delivery-nodes.js'
import { defineScript } from '../script.js'
import { DELIVERY_MOVES } from './delivery-moves.js'

/** A dead node's waiters stay this long after its lease: it may only have been slow. */
const REAP_MS = 60_000
/** Waiters of a dead node that one pass removes, and notices that one look takes: about a millisecond. */
const BATCH = 100
/** Nodes listed: a deployment has tens; more are ids that somebody makes anew at each start. */
const NODES_MAX = 1_000

const deliveryScript = (body: string) => defineScript(`${DELIVERY_MOVES}${body}`)

/**
 * ARGV: 6 user, 7 client, 8 token, 9 instance, 10 lease, 11 `again` when the waiter only renews itself. Answers whether
 * it waits.
 */
export const ATTACH = deliveryScript(`
local user, client, token = ARGV[6], ARGV[7], ARGV[8]
local key, place = K(D, 'waiter', user, client), user .. '\\n' .. client
local was = redis.call('HMGET', key, 'token', 'boot')
if ARGV[11] == 'again' and was[1] and was[1] ~= token then return reply(0) end
if was[1] and was[1] ~= token then
  redis.call('SREM', K(D, 'of', was[2]), place)
  tell(was[2], 'replaced\\n' .. place .. '\\n' .. was[1])
end
redis.call('HSET', key, 'token', token, 'boot', boot, 'instance', ARGV[9])
redis.call('SADD', K(D, 'of', boot), place)
zcall('ZADD', 'boots', now + ARGV[10], boot)
return reply(1)`)

/** ARGV: 6 user, 7 client, 8 token. */
export const DETACH = deliveryScript(`
local key = K(D, 'waiter', ARGV[6], ARGV[7])
if redis.call('HGET', key, 'token') ~= ARGV[8] then return reply(0) end
redis.call('DEL', key)
redis.call('SREM', K(D, 'of', boot), ARGV[6] .. '\\n' .. ARGV[7])
return reply(1)`)

const TAKE_CALLS = `
local function take_calls()
  local calls = redis.call('SPOP', K(D, 'calls', boot), ${BATCH})
  for i = 1, #calls do told[#told + 1] = calls[i] end
  return #calls == ${BATCH}
end`

/** What this node is to be told. Answers whether there is more. */
export const TAKE = deliveryScript(`${TAKE_CALLS}
return reply(take_calls() and 1 or 0)`)

/**
 * One pass over a shard. ARGV: 6 most commands, 7 lease. Answers whether the node's lease had run out, whether there is
 * more, and in how many ms the next command is due. Rings the node's own bell, so that it knows that it would hear.
 */
export const RECONCILE = deliveryScript(`${TAKE_CALLS}
local left = tonumber(ARGV[6])
local lease = zcall('ZSCORE', 'boots', boot)
local lapsed = not lease or tonumber(lease) <= now
zcall('ZADD', 'boots', now + ARGV[7], boot)
redis.call('SPUBLISH', K(D, 'bell', boot), 'echo')

local function reap(dead)
  local places = redis.call('SPOP', K(D, 'of', dead), ${BATCH})
  for i = 1, #places do
    local key = K(D, 'waiter', string.match(places[i], '^([^\\n]*)\\n([^\\n]*)$'))
    if redis.call('HGET', key, 'boot') == dead then redis.call('DEL', key) end
  end
  if #places < ${BATCH} then zcall('ZREM', 'boots', dead) end
end
local dead = zcall('ZRANGE', 'boots', '-inf', now - ${REAP_MS}, 'BYSCORE', 'LIMIT', 0, 1)[1]
if dead then reap(dead) end

for _, ref in ipairs(due('deadlines', left)) do
  left = left - 1
  local c = look_ref(ref)
  if not c or c.phase == 'ended' then zcall('ZREM', 'deadlines', ref) end
  if not c then zcall('ZREM', 'queued', ref) end
end
for _, ref in ipairs(due('wakes', left)) do
  left = left - 1
  local c = look_ref(ref)
  if c and c.phase == 'attempted' then give_up(c)
  elseif c and c.phase == 'backoff' then ready(c)
  else zcall('ZREM', 'wakes', ref) end
end
for _, kind in ipairs({ 'ended', 'rejected' }) do
  for _, ref in ipairs(due(kind, left)) do
    left = left - 1
    forget(kind, ref)
  end
end
for _, scope in ipairs(due('scope-until', left)) do
  left = left - 1
  redis.call('ZREMRANGEBYSCORE', K(D, 'scope', scope), '-inf', now)
  zcall('ZREM', 'scope-until', scope)
  close_scope(scope)
end

local next_at = now + ${NODE_KEPT_MS}
for _, key in ipairs({ 'deadlines', 'wakes' }) do
  local first = zcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then next_at = math.min(next_at, tonumber(first[2])) end
end
local more = take_calls() or left <= 0
return reply({ lapsed and 1 or 0, more and 1 or 0, math.max(0, next_at - now) })`)

/** The node's entry. ARGV: 2 node, 3 what it says of itself. Answers the time. */
export const BEAT = defineScript(`
local t, id = 'nodes', ARGV[2]
sweep(t)
put(t, id, load(t, id), { node_id = id, updated_at = now, ix = { { 'node_id', id } } }, ARGV[3], now + ${NODE_KEPT_MS})
if redis.call('ZCARD', K(t, 'all')) > ${NODES_MAX} then drop(t, redis.call('ZRANGE', K(t, 'leaves'), 0, 0)[1]) end
return now`)
