/** The scripts of the connection registry: fencing, signs of life, and who offers which action. */
import { LifecycleReason } from '../../contract/connections.js'
import { IDEMPOTENCE } from '../store/idempotence.js'
import { count, isOne, listOf, textOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import { SHARES } from '../store/shares.js'
import { CHURN } from './script-churn.js'

const REASON = LifecycleReason.enum

/** Connections that one write sweeps at most: lost ones, and those whose retention has passed. */
const SWEEP = 16
/**
 * And what these may drag along, in actions: a silent one withdraws each that it offered. One connection is swept
 * whatever it drags, since a connect adds one; more would be time in which the store serves nobody else.
 */
const SWEEP_ACTIONS = 64

// A silent connection is lost after `lost_after`; `max_ended` are the disconnected ones that are kept.
const SWEEP_ARGS = ['lost_after', 'retention', 'max_ended'] as const
// `current:<user>:<client>`: the connection that holds the client, or held it last; `beats`: connected ones by the time at which they are
// lost; `ended`: disconnected ones by their end; both of them pools with a part for each user. `actions`: names on offer; `action:<name>`: counters of connections and
// of distinct users, in all and by client type; `offers:<name>`: connections per user, in all and by client type;
// `actions-of:<user>`: names the user offers.
const CONNECTIONS = `${IDEMPOTENCE}${SHARES}
local t = 'connections'
${CHURN}

local function step(counts, field, by)
  local count = redis.call('HINCRBY', counts, field, by)
  if count <= 0 then redis.call('HDEL', counts, field) end
  return count
end

-- Users are counted when their first connection comes and their last one goes.
local function tally(action, offers, who, user, by)
  step(action, 'connections ' .. who, by)
  local count = step(offers, who .. ' ' .. user, by)
  if (by == 1 and count == 1) or (by == -1 and count == 0) then step(action, 'users ' .. who, by) end
  return count
end

local function offer(state, by, texts)
  for _, name in ipairs(state.names or {}) do
    local action, offers, user = K(t, 'action', name), K(t, 'offers', name), state.user_id
    tally(action, offers, state.client_type, user, by)
    local count = tally(action, offers, 'all', user, by)
    local text = texts and texts[name]
    if by == 1 then redis.call('HSET', action, 'latest_at', now) end
    if text then
      redis.call('HSET', action, 'latest', text)
      redis.call('HSET', offers, 'latest ' .. user, text)
    elseif by == 1 then
      redis.call('HDEL', action, 'latest')
      redis.call('HDEL', offers, 'latest ' .. user)
    end
    if count > 0 then
      redis.call('ZADD', K(t, 'actions'), 0, name)
      redis.call('ZADD', K(t, 'actions-of', user), 0, name)
    else
      redis.call('ZREM', K(t, 'actions-of', user), name)
      redis.call('HDEL', offers, 'latest ' .. user)
      if redis.call('HEXISTS', action, 'users all') == 0 then
        redis.call('DEL', action, offers)
        redis.call('ZREM', K(t, 'actions'), name)
      end
    end
  end
end

local function forget(id, user)
  local state = load(t, id)
  user = user or (state and state.user_id)
  if state and type(state.user_id) == 'string' and type(state.client_id) == 'string' then
    local current = K(t, 'current', state.user_id, state.client_id)
    if redis.call('GET', current) == id then redis.call('DEL', current) end
  end
  unplace(t, 'beats', user, id)
  unhold(t, 'ended', user, id)
  drop(t, id)
end

local function finish(id, state, body, how, reason, at)
  state['end'], state.reason, state.ended_at = how, reason, at
  if type(reason) == 'string' then
    state.ix[#state.ix + 1] = { 'ended_reason', reason }
    redis.call('ZADD', K(t, 'ended_reason', reason), state.seq, id)
  end
  churn_end(state, reason, at)
  offer(state, -1)
  unplace(t, 'beats', state.user_id, id)
  hold(t, 'ended', state.user_id, id, at)
  save(t, id, state, body)
  leave(t, id, state, at + state.retention_ms)
  if redis.call('ZCARD', K(t, 'ended')) > tonumber(max_ended) then forget(surplus(t, 'ended')) end
end

local function lose(id, state, body) finish(id, state, body, 'disconnected', '${REASON.heartbeat_lost}', state.seen_at + state.lost_after_ms) end

local function sweep_connections()
  watch()
  local left = ${SWEEP_ACTIONS}
  local function lose_one(id, state, body)
    left = left - #(state.names or {})
    lose(id, state, body)
  end
  for _, id in ipairs(redis.call('ZRANGE', K(t, 'beats'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do
    if left <= 0 then return end
    local state, body = load(t, id)
    if state then lose_one(id, state, body) else forget(id) end
  end
  for _, id in ipairs(redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do
    if left <= 0 then return end
    local state, body = load(t, id)
    if state and not state.ended_at then lose_one(id, state, body) end
    forget(id, state and state.user_id)
  end
end

-- The connection of that id while it is connected.
local function connected(id)
  local state, body = load(t, id)
  if not state or state.ended_at or state.seen_at + state.lost_after_ms <= now then return nil end
  return state, body
end
`

/**
 * `descriptions` are those of actions that have one. Answers the time, and how often the client has been superseded; a second
 * arrival the first one's, and changes nothing.
 */
export const CONNECT = defineScript(
  'connections.connect',
  {
    args: [...SWEEP_ARGS, 'id', 'fields', 'content', 'max_per_user', 'max_connections', 'descriptions'],
    answer: (reply) => {
      const [connectedAt = null, superseded = null] = listOf(reply)
      return { connectedAt: count(connectedAt), superseded: count(superseded) }
    },
  },
  `${CONNECTIONS}
sweep_connections()
return once(id, function()
local state = cjson.decode(fields)
local current = K(t, 'current', state.user_id, state.client_id)
local known = redis.call('GET', current)
local was, was_body
if known then was, was_body = load(t, known) end
local superseded = 0
if was and (was.ended_at or was.seen_at + was.lost_after_ms) + was.retention_ms > now then
  superseded = tonumber(was.superseded) or 0
end
if was and was.ended_at then was = nil end
local replaces = was and was.seen_at + was.lost_after_ms > now
if not replaces and not has_room(K(t, 'beats-of', state.user_id), max_per_user, K(t, 'beats'), max_connections) then
  return refuse('capacity_exceeded')
end
if was then
  if not replaces then lose(known, was, was_body)
  elseif was.instance_id == state.instance_id then finish(known, was, was_body, 'disconnected', '${REASON.reconnected}', now)
  else
    superseded = superseded + 1
    finish(known, was, was_body, 'superseded', '${REASON.new_instance}', now)
  end
end
if superseded > 0 then state.superseded = superseded end
state.connected_at, state.seen_at = now, now
state.lost_after_ms, state.retention_ms = tonumber(lost_after), tonumber(retention)
state.ix = { { 'user_id', state.user_id } }
if type(state.node_id) == 'string' then state.ix[2] = { 'node_id', state.node_id } end
put(t, id, nil, state, content, now + lost_after + retention)
place(t, 'beats', state.user_id, id, now + lost_after)
redis.call('SET', current, id)
offer(state, 1, cjson.decode(descriptions))
churn('opened', state, now)
return { string.format('%.0f', now), superseded }
end)`,
)

/**
 * `content` is the body of what the client says of itself now, or ''. `sent` is who says so and their count: what arrives behind
 * something later of theirs, or again, is a sign of life and no more.
 */
export const HEARTBEAT = defineScript(
  'connections.heartbeat',
  { args: [...SWEEP_ARGS, 'id', 'content', 'sent'], answer: isOne },
  `${CONNECTIONS}
sweep_connections()
local state, body = connected(id)
if not state then return 0 end
now = math.max(now, state.seen_at)
state.seen_at = now
local by, at = string.match(tostring(state.sent), '^(%S+) (%d+)$')
local own_by, own_at = string.match(sent, '^(%S+) (%d+)$')
if content ~= '' and (by ~= own_by or tonumber(own_at) > tonumber(at)) then body, state.sent = content, sent end
save(t, id, state, body)
leave(t, id, state, now + state.lost_after_ms + state.retention_ms)
place(t, 'beats', state.user_id, id, now + state.lost_after_ms)
return 1`,
)

/** `reason` may be ''. */
export const DISCONNECT = defineScript(
  'connections.disconnect',
  { args: [...SWEEP_ARGS, 'id', 'reason', 'attempt'], answer: isOne },
  `${CONNECTIONS}
sweep_connections()
local state, body = connected(id)
if not state and redis.call('EXISTS', K('once', attempt)) == 0 then return 0 end
return once(attempt, function()
finish(id, state, body, 'disconnected', reason ~= '' and reason or cjson.null, now)
return 1
end)`,
)

/** What the loop of a node sweeps without a write of this family. Answers whether there is more. */
export const SWEEP_CONNECTIONS = defineScript(
  'connections.sweep',
  { args: SWEEP_ARGS, answer: isOne, freesMemory: true },
  `${CONNECTIONS}
sweep_connections()
local due = redis.call('ZCOUNT', K(t, 'beats'), '-inf', now) + redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now)
return due > 0 and 1 or 0`,
)

/** Answers the instance that holds the client, or nothing. */
export const CURRENT_INSTANCE = defineScript(
  'connections.current',
  { args: [...SWEEP_ARGS, 'user', 'client'], answer: textOf },
  `${CONNECTIONS}
local known = redis.call('GET', K(t, 'current', user, client))
local state = known and connected(known)
return state and state.instance_id`,
)
