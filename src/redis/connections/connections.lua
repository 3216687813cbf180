-- `current:<user>:<client>`: the connection that holds the client, or held it last. `beats`: connected ones by the time
-- at which they are lost without a heartbeat; `ended`: disconnected ones by their end. Both are pools with a part for
-- each user.

--@include ../store/tables.lua
--@include ../store/once.lua
--@include ../store/shares.lua

-- Connections that one write sweeps at most: lost ones, and those whose retention has passed.
local SWEEP_CONNECTIONS = 16

local t = 'connections'
--@include ./churn.lua

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

local function lose(id, state, body)
  finish(id, state, body, 'disconnected', {{HEARTBEAT_LOST}}, state.seen_at + state.lost_after_ms)
end

local function sweep_connections()
  watch()
  for _, id in ipairs(redis.call('ZRANGE', K(t, 'beats'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_CONNECTIONS)) do
    local state, body = load(t, id)
    if state then lose(id, state, body) else forget(id) end
  end
  for _, id in ipairs(redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_CONNECTIONS)) do
    local state, body = load(t, id)
    if state and not state.ended_at then lose(id, state, body) end
    forget(id, state and state.user_id)
  end
end

-- Returns state and body of a connection that is connected, else nil.
local function connected(id)
  local state, body = load(t, id)
  if not state or state.ended_at or state.seen_at + state.lost_after_ms <= now then return nil end
  return state, body
end
