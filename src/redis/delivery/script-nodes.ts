/** The scripts of a node: its waiters, its lease, the reconciliation of a shard, and its entry in the list of nodes. */
import { ignoreReply, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import tablesLua from '../store/tables.lua'
import { deliveryScript } from './node-script.js'
import { NODE_KEPT_MS } from './nodes.js'
import { DELIVERY_NEWS } from './script-notices.js'
import { DELIVERY_RECOVERY } from './script-recovery.js'

/** A dead node's waiters stay this long after its lease: it may only have been slow. */
const REAP_MS = 60_000
/** That a waiter left is remembered this long: longer than any write of his can be late. */
const LEFT_MS = 60_000
/** Waiters of a dead node that one pass removes: about a millisecond. */
const BATCH = 100
/** A node's waiters that it is asked about in one pass, when they have not been confirmed for so long. */
const UNCONFIRMED_MAX = 50
const CONFIRMED_MS = 10_000
/** Nodes listed: a deployment has tens; more are ids that somebody makes anew at each start. */
const NODES_MAX = 1_000

const PASS = `${DELIVERY_RECOVERY}${DELIVERY_NEWS}
local function due(name, limit)
  written(name)
  return zcall('ZRANGE', name, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, limit)
end
local function look_ref(ref) return look(of_ref(ref)) end
`

// Whatever is said here carries what it comes after: an order, a token, the number of what was heard.
const ANY_TIME = { anyTime: true }
const FREEING = { anyTime: true, freesMemory: true }

/** The order of an attach that is about to be made. */
export const ORDER = deliveryScript(
  'delivery.order',
  { args: [], answer: String, ...ANY_TIME },
  `
return order()`,
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
    ...ANY_TIME,
  },
  `
local own = tonumber(own_order)
local key, place = K(D, 'waiter', user, client), user .. '\\n' .. client
local was = redis.call('HMGET', key, 'token', 'incarnation', 'instance', 'order')
if was[1] ~= token then
  local isLate = own <= (tonumber(redis.call('GET', K(D, 'left', user, client))) or 0)
  if was[1] then isLate = own < (tonumber(was[4]) or 0) end
  if isLate then
    count('other waiter_late')
    return { 'late', was[3] or '' }
  end
  if was[1] then
    redis.call('ZREM', K(D, 'of', was[2]), place)
    redis.call('ZREM', K(D, 'todo', was[2]), place)
    notify(was[2], 'replaced\\n' .. place .. '\\n' .. was[1])
    redis.call('DEL', key)
  end
end
raise(D)
redis.call('HSET', key, 'token', token, 'incarnation', incarnation, 'instance', instance, 'order', own_order, 'node', node)
redis.call('HSETNX', key, 'since', now_text)
zcall('ZADD', 'attached', own_order, place)
redis.call('ZADD', K(D, 'attached-of', user), own_order, place)
redis.call('ZADD', K(D, 'of', incarnation), stored_now, place)
zcall('ZADD', 'incarnations', now + lease_ms, incarnation)
if redis.call('EXISTS', K(D, 'box', user, client)) == 1 then redis.call('ZADD', K(D, 'todo', incarnation), stored_now, place) end
return { 'waits' }`,
)

/** From here on an attach of `own_order`, if any, is late. `unsure` is a claim whose answer was lost, or ''. */
export const DETACH = deliveryScript(
  'delivery.detach',
  {
    args: ['user', 'client', 'token', 'own_order', 'unsure'],
    answer: ignoreReply,
    ...FREEING,
    parts: [DELIVERY_RECOVERY],
  },
  `
local key, place, left = K(D, 'waiter', user, client), user .. '\\n' .. client, K(D, 'left', user, client)
local waiter = redis.call('HMGET', key, 'token', 'claim', 'claimed', 'attempt')
if own_order ~= '' and tonumber(own_order) > (tonumber(redis.call('GET', left)) or 0) then
  redis.call('SET', left, own_order, 'PX', ${LEFT_MS})
end
if waiter[1] ~= token then return 0 end
raise(D)
redis.call('DEL', key)
zcall('ZREM', 'attached', place)
redis.call('ZREM', K(D, 'attached-of', user), place)
redis.call('ZREM', K(D, 'of', incarnation), place)
redis.call('ZREM', K(D, 'todo', incarnation), place)
if unsure ~= '' and waiter[2] == unsure then
  local c = look(user, client, waiter[3])
  if c and c.phase == 'attempted' and c.attempts == waiter[4] and c.last_outcome == '' then requeue(c) end
end
return 1`,
)

/** What this node is to be notices. `after` and `heard` are up to which number it has heard. */
export const TAKE = deliveryScript(
  'delivery.take',
  {
    args: ['after'],
    answer: (reply) => {
      const [more, heard] = listOf(reply)
      return { isMore: more === 1, heard: String(heard) }
    },
    ...FREEING,
    parts: [DELIVERY_NEWS],
  },
  `
local heard, more = take(after)
return { more, heard }`,
)

/**
 * One pass over a shard, of `max_commands`. `held_json` are so many `waiters`, of each its user, client and token, then
 * commands that the node holds. Answers whether the node's lease had run out, and in how many ms the next command is due.
 */
export const RECONCILE = deliveryScript(
  'delivery.reconcile',
  {
    args: ['max_commands', 'lease_ms', 'after', 'waiters', 'held_json'],
    answer: (reply) => {
      const [lapsed, more, nextIn, heard] = listOf(reply)
      return { isLapsed: lapsed === 1, isMore: more === 1, nextIn: Number(nextIn), heard: String(heard) }
    },
    ...FREEING,
    parts: [PASS],
  },
  `
by_news = true
local left = tonumber(max_commands)
local lease = zcall('ZSCORE', 'incarnations', incarnation)
local lapsed = not lease or tonumber(lease) <= now
zcall('ZADD', 'incarnations', now + lease_ms, incarnation)

local function say(notice) notices[#notices + 1] = notice end
local function confirm(user, client, token)
  local was = redis.call('HMGET', K(D, 'waiter', user, client), 'token', 'incarnation')
  local place = user .. '\\n' .. client
  if was[1] == token and was[2] == incarnation then redis.call('ZADD', K(D, 'of', incarnation), stored_now, place)
  else say((was[1] and 'replaced' or 'missing') .. '\\n' .. place .. '\\n' .. token) end
end
local held = cjson.decode(held_json)
local last = 3 * tonumber(waiters)
for i = 1, last, 3 do confirm(held[i], held[i + 1], held[i + 2]) end
for i = last + 1, #held do
  local c = look_ref(held[i])
  if not c or c.phase == 'ended' then say((c and c.terminal ~= '' and c.terminal or 'forgotten') .. '\\n' .. held[i])
  elseif c.phase == 'acknowledged' then say('acknowledged\\n' .. held[i]) end
end
for _, place in ipairs(redis.call('ZRANGE', K(D, 'of', incarnation), '-inf', stored_now - ${CONFIRMED_MS}, 'BYSCORE', 'LIMIT', 0, ${UNCONFIRMED_MAX})) do
  local token = redis.call('HGET', K(D, 'waiter', string.match(place, '^([^\\n]*)\\n([^\\n]*)$')), 'token')
  if token then say('held\\n' .. place .. '\\n' .. token) else redis.call('ZREM', K(D, 'of', incarnation), place) end
end

local function reap(dead)
  local places = redis.call('ZRANGE', K(D, 'of', dead), 0, ${BATCH - 1})
  for i = 1, #places do
    local user, client = string.match(places[i], '^([^\\n]*)\\n([^\\n]*)$')
    local key = K(D, 'waiter', user, client)
    -- The client may wait at another node by now.
    if redis.call('HGET', key, 'incarnation') == dead then
      redis.call('DEL', key)
      zcall('ZREM', 'attached', places[i])
      redis.call('ZREM', K(D, 'attached-of', user), places[i])
    end
    redis.call('ZREM', K(D, 'of', dead), places[i])
  end
  if #places < ${BATCH} then
    gathered[todo_of(dead)] = nil
    redis.call('DEL', K(D, 'todo', dead), K(D, 'news', dead))
    zcall('ZREM', 'incarnations', dead)
  end
end
local dead = zcall('ZRANGE', 'incarnations', '-inf', now - ${REAP_MS}, 'BYSCORE', 'LIMIT', 0, 1)[1]
if dead then reap(dead) end

for _, ref in ipairs(due('deadlines', left)) do
  left = left - 1
  local user, client, id = of_ref(ref)
  local c = look(user, client, id)
  if not c or c.phase == 'ended' then untrack(user or '', ref) end
  if not c and user then unlist(user, ref, K(D, 'command', user, client, id)) end
end
for _, ref in ipairs(due('wakes', left)) do
  left = left - 1
  local c = look_ref(ref)
  if c and c.phase == 'attempted' then give_up(c)
  elseif c and c.phase == 'backoff' then ready(c)
  else leave_list('wakes', ref) end
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
  written(key)
  local first = zcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then next_at = math.min(next_at, tonumber(first[2])) end
end
local heard, more = take(after)
if left <= 0 then more = 1 end
return { lapsed and 1 or 0, more, math.max(0, next_at - now), heard }`,
)

/** The node's entry: what it says of itself. */
export const BEAT = defineScript(
  'delivery.beat',
  { args: ['id', 'record', 'kept_ms'], answer: ignoreReply },
  `${tablesLua}
local t = 'nodes'
sweep(t)
put(t, id, load(t, id), { node_id = id, updated_at = now, ix = { { 'node_id', id } } }, record, now + tonumber(kept_ms))
if redis.call('ZCARD', K(t, 'all')) > ${NODES_MAX} then drop(t, redis.call('ZRANGE', K(t, 'leaves'), 0, 0)[1]) end
return now`,
)
