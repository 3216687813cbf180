/** The scripts of the connection registry: fencing and signs of life. */
import { LifecycleReason } from '../../contract/connections.js'
import { IDEMPOTENCE } from '../store/idempotence.js'
import { count, listOf, parseFlag, parseText } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import { SHARES } from '../store/shares.js'
import { CHURN } from './script-churn.js'

const REASON = LifecycleReason.enum

/** Connections that one write sweeps at most: lost ones, and those whose retention has passed. */
const SWEEP = 16
// A silent connection is lost after `lost_after`; `max_ended` are the disconnected ones that are kept.
const SWEEP_ARGS = ['lost_after', 'retention', 'max_ended'] as const
// `current:<user>:<client>`: the connection that holds the client, or held it last; `beats`: connected ones by the time at which they are
// lost; `ended`: disconnected ones by their end; both of them pools with a part for each user.
const CONNECTIONS = `${IDEMPOTENCE}${SHARES}
local t = 'connections'
${CHURN}

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
  unplace(t, 'beats', state.user_id, id)
  hold(t, 'ended', state.user_id, id, at)
  save(t, id, state, body)
  leave(t, id, state, at + state.retention_ms)
  if redis.call('ZCARD', K(t, 'ended')) > tonumber(max_ended) then forget(surplus(t, 'ended')) end
end

local function lose(id, state, body) finish(id, state, body, 'disconnected', '${REASON.heartbeat_lost}', state.seen_at + state.lost_after_ms) end

local function sweep_connections()
  watch()
  for _, id in ipairs(redis.call('ZRANGE', K(t, 'beats'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do
    local state, body = load(t, id)
    if state then lose(id, state, body) else forget(id) end
  end
  for _, id in ipairs(redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do
    local state, body = load(t, id)
    if state and not state.ended_at then lose(id, state, body) end
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
 * Answers the time, and how often the client has been superseded; a second arrival the first one's, and changes nothing.
 */
export const CONNECT = defineScript(
  'connections.connect',
  {
    args: [...SWEEP_ARGS, 'id', 'fields', 'content', 'max_per_user', 'max_connections'],
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
  { args: [...SWEEP_ARGS, 'id', 'content', 'sent'], answer: parseFlag },
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
  { args: [...SWEEP_ARGS, 'id', 'reason', 'attempt'], answer: parseFlag },
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
  { args: SWEEP_ARGS, answer: parseFlag, freesMemory: true },
  `${CONNECTIONS}
sweep_connections()
local due = redis.call('ZCOUNT', K(t, 'beats'), '-inf', now) + redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now)
return due > 0 and 1 or 0`,
)

/** Answers the instance that holds the client, or nothing. */
export const CURRENT_INSTANCE = defineScript(
  'connections.current',
  { args: [...SWEEP_ARGS, 'user', 'client'], answer: parseText },
  `${CONNECTIONS}
local known = redis.call('GET', K(t, 'current', user, client))
local state = known and connected(known)
return state and state.instance_id`,
)
