/** The scripts of a node: its waiters, its lease, the reconciliation of a shard, and its entry in the list of nodes. */
import { listOf, nothing } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import { deliveryScript } from './node-script.js'
import { NODE_KEPT_MS } from './nodes.js'

/** A dead node's waiters stay this long after its lease: it may only have been slow. */
const REAP_MS = 60_000
/** That a waiter left is remembered this long: longer than any write of his can be late. */
const LEFT_MS = 60_000
/** Waiters of a dead node that one pass removes: about a millisecond. */
const BATCH = 100
/** A node's waiters that it is asked about in one pass, when they have not been confirmed for so long. */
const ASKED = 50
const CONFIRMED_MS = 10_000
/** Nodes listed: a deployment has tens; more are ids that somebody makes anew at each start. */
const NODES_MAX = 1_000

// Whatever is said here carries what it comes after: an order, a token, the number of what was heard.
const LATE = { anyTime: true }
const FREEING = { anyTime: true, freesMemory: true }

/** The order of an attach that is about to be made. */
export const ORDER = deliveryScript(
  'delivery.order',
  { args: [], answer: String, ...LATE },
  `
return reply(order())`,
)

/**
 * Answers `null` when it waits; where it comes after one with a greater order, the instance that waits there, '' for
 * none.
 */
export const ATTACH = deliveryScript(
  'delivery.attach',
  {
    args: ['user', 'client', 'token', 'instance', 'lease_ms', 'own_order'],
    answer: (reply) => {
      const [state, instead] = listOf(reply)
      return state === 'waits' ? null : String(instead)
    },
    ...LATE,
  },
  `
local own = tonumber(own_order)
local key, place = K(D, 'waiter', user, client), user .. '\\n' .. client
local was = redis.call('HMGET', key, 'token', 'boot', 'instance', 'order')
if was[1] ~= token then
  local isLate = own <= (tonumber(redis.call('GET', K(D, 'left', user, client))) or 0)
  if was[1] then isLate = own < (tonumber(was[4]) or 0) end
  if isLate then
    count('other', 'waiter_late')
    return reply({ 'late', was[3] or '' })
  end
  if was[1] then
    redis.call('ZREM', K(D, 'of', was[2]), place)
    redis.call('ZREM', K(D, 'todo', was[2]), place)
    tell(was[2], 'replaced\\n' .. place .. '\\n' .. was[1])
    redis.call('DEL', key)
  end
end
redis.call('HSET', key, 'token', token, 'boot', boot, 'instance', instance, 'order', own_order)
redis.call('ZADD', K(D, 'of', boot), stored_now, place)
zcall('ZADD', 'boots', now + lease_ms, boot)
if redis.call('EXISTS', K(D, 'box', user, client)) == 1 then redis.call('ZADD', K(D, 'todo', boot), stored_now, place) end
return reply({ 'waits' })`,
)

/** From here on an attach of `own_order`, if any, is late. `unsure` is a claim whose answer was lost, or ''. */
export const DETACH = deliveryScript(
  'delivery.detach',
  { args: ['user', 'client', 'token', 'own_order', 'unsure'], answer: nothing, ...FREEING },
  `
local key, place, left = K(D, 'waiter', user, client), user .. '\\n' .. client, K(D, 'left', user, client)
local waiter = redis.call('HMGET', key, 'token', 'claim', 'claimed', 'attempt')
if own_order ~= '' and tonumber(own_order) > (tonumber(redis.call('GET', left)) or 0) then
  redis.call('SET', left, own_order, 'PX', ${LEFT_MS})
end
if waiter[1] ~= token then return reply(0) end
redis.call('DEL', key)
redis.call('ZREM', K(D, 'of', boot), place)
redis.call('ZREM', K(D, 'todo', boot), place)
if unsure ~= '' and waiter[2] == unsure then
  local c = look(user, client, waiter[3])
  if c and c.phase == 'attempted' and c.attempts == waiter[4] and not c.last_outcome then requeue(c) end
end
return reply(1)`,
)

/** What this node is to be told. `after` and `heard` are up to which number it has heard. */
export const TAKE = deliveryScript(
  'delivery.take',
  {
    args: ['after'],
    answer: (reply) => {
      const [more, heard] = listOf(reply)
      return { isMore: more === 1, heard: String(heard) }
    },
    ...FREEING,
  },
  `
local heard, more = take(after)
return reply({ more, heard })`,
)

/**
 * One pass over a shard, of `max_commands`. `held` are so many `waiters`, of each its user, client and token, then commands
 * that the node holds. Answers whether the node's lease had run out, and in how many ms the next command is due. Rings
 * the node's own bell, so that it knows that it would hear.
 */
export const RECONCILE = deliveryScript(
  'delivery.reconcile',
  {
    args: ['max_commands', 'lease_ms', 'after', 'waiters'],
    rest: 'held',
    answer: (reply) => {
      const [lapsed, more, nextIn, heard] = listOf(reply)
      return { isLapsed: lapsed === 1, isMore: more === 1, nextIn: Number(nextIn), heard: String(heard) }
    },
    ...FREEING,
  },
  `
by_news = true
local left = tonumber(max_commands)
local lease = zcall('ZSCORE', 'boots', boot)
local lapsed = not lease or tonumber(lease) <= now
zcall('ZADD', 'boots', now + lease_ms, boot)
redis.call('SPUBLISH', K(D, 'bell', boot), 'echo')

local function say(notice) told[#told + 1] = notice end
local function confirm(user, client, token)
  local was = redis.call('HMGET', K(D, 'waiter', user, client), 'token', 'boot')
  local place = user .. '\\n' .. client
  if was[1] == token and was[2] == boot then redis.call('ZADD', K(D, 'of', boot), stored_now, place)
  else say((was[1] and 'replaced' or 'missing') .. '\\n' .. place .. '\\n' .. token) end
end
local last = 3 * tonumber(waiters)
for i = 1, last, 3 do confirm(held[i], held[i + 1], held[i + 2]) end
for i = last + 1, #held do
  local c = look_ref(held[i])
  if not c or c.phase == 'ended' then say((c and c.terminal or 'forgotten') .. '\\n' .. held[i])
  elseif c.acknowledged then say('acknowledged\\n' .. held[i]) end
end
for _, place in ipairs(redis.call('ZRANGE', K(D, 'of', boot), '-inf', stored_now - ${CONFIRMED_MS}, 'BYSCORE', 'LIMIT', 0, ${ASKED})) do
  local token = redis.call('HGET', K(D, 'waiter', string.match(place, '^([^\\n]*)\\n([^\\n]*)$')), 'token')
  if token then say('held\\n' .. place .. '\\n' .. token) else redis.call('ZREM', K(D, 'of', boot), place) end
end

local function reap(dead)
  local places = redis.call('ZRANGE', K(D, 'of', dead), 0, ${BATCH - 1})
  for i = 1, #places do
    local key = K(D, 'waiter', string.match(places[i], '^([^\\n]*)\\n([^\\n]*)$'))
    -- The client may wait at another node by now.
    if redis.call('HGET', key, 'boot') == dead then redis.call('DEL', key) end
    redis.call('ZREM', K(D, 'of', dead), places[i])
  end
  if #places < ${BATCH} then
    redis.call('DEL', K(D, 'todo', dead), K(D, 'news', dead))
    zcall('ZREM', 'boots', dead)
  end
end
local dead = zcall('ZRANGE', 'boots', '-inf', now - ${REAP_MS}, 'BYSCORE', 'LIMIT', 0, 1)[1]
if dead then reap(dead) end

for _, ref in ipairs(due('deadlines', left)) do
  left = left - 1
  local c = look_ref(ref)
  if not c or c.phase == 'ended' then untrack(string.match(ref, '^([^\\n]*)') or '', ref) end
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
local heard, more = take(after)
if left <= 0 then more = 1 end
return reply({ lapsed and 1 or 0, more, math.max(0, next_at - now), heard })`,
)

/** The node's entry: what it says of itself. */
export const BEAT = defineScript(
  'delivery.beat',
  { args: ['id', 'report'], answer: nothing },
  `
local t = 'nodes'
sweep(t)
put(t, id, load(t, id), { node_id = id, updated_at = now, ix = { { 'node_id', id } } }, report, now + ${NODE_KEPT_MS})
if redis.call('ZCARD', K(t, 'all')) > ${NODES_MAX} then drop(t, redis.call('ZRANGE', K(t, 'leaves'), 0, 0)[1]) end
return now`,
)
