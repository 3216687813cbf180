--@part churn
-- Counts connections that open and end, minute by minute. `churn:<minute>` is a sorted set: entries `opened <type>
-- <node>` and `ended <reason> <type> <node>` by how often, without a node where the connection has none. A minute
-- exists once a script has run in it, even when nothing happened. If another application has written there, connections
-- work all the same.
local function churn_key(at) return K(t, 'churn', string.format('%.0f', math.floor(at / {{MINUTE_MS}}))) end

local function watch()
  local key = churn_key(now)
  if redis.pcall('ZADD', key, 'NX', 0, 'watched') == 1 then redis.call('PEXPIRE', key, {{CHURN_KEPT_MS}}) end
end

-- Counts an event at `at`; in the current minute if no script ran in that one.
local function churn(what, state, at)
  local key = churn_key(at)
  if redis.call('EXISTS', key) == 0 then key = churn_key(now) end
  local type_of = tostring(state.client_type)
  local field = what .. ' ' .. type_of
  if type(state.node_id) == 'string' then field = field .. ' ' .. state.node_id end
  if not redis.pcall('ZSCORE', key, field) and redis.call('ZCARD', key) > {{CHURN_COMBINATIONS}} then
    field = (what == 'opened' and what or 'ended ' .. {{OTHER}}) .. ' ' .. type_of
  end
  redis.pcall('ZINCRBY', key, 1, field)
end

local function churn_end(state, reason, at)
  churn('ended ' .. (type(reason) == 'string' and reason or {{UNSPECIFIED}}), state, at)
end

--@part connections
-- `current:<user>:<client>`: the connection that holds the client, or held it last. `beats`: connected ones by the time
-- at which they are lost without a heartbeat; `ended`: disconnected ones by their end. Both are pools with a part for
-- each user.

--@include ../store/tables.lua
--@include ../store/once.lua
--@include ../store/shares.lua

-- Connections that one write sweeps at most: lost ones, and those whose retention has passed.
local SWEEP_CONNECTIONS = 16

local t = 'connections'
--@include churn

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
    write('ZADD', K(t, 'ended_reason', reason), state.seq, id)
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

--@script connect
--@include connections

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
    elseif was.instance_id == state.instance_id then finish(known, was, was_body, 'disconnected', {{RECONNECTED}}, now)
    else
      superseded = superseded + 1
      finish(known, was, was_body, 'superseded', {{NEW_INSTANCE}}, now)
    end
  end
  if superseded > 0 then state.superseded = superseded end
  state.connected_at, state.seen_at = now, now
  state.lost_after_ms, state.retention_ms = tonumber(lost_after), tonumber(retention)
  state.ix = { { 'user_id', state.user_id } }
  if type(state.node_id) == 'string' then state.ix[2] = { 'node_id', state.node_id } end
  put(t, id, nil, state, content, now + lost_after + retention)
  place(t, 'beats', state.user_id, id, now + lost_after)
  write('SET', current, id)
  churn('opened', state, now)
  return { string.format('%.0f', now), superseded }
end)

--@script heartbeat
--@include connections

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
return 1

--@script disconnect
--@include connections

sweep_connections()
local state, body = connected(id)
if not state and redis.call('EXISTS', K('once', attempt)) == 0 then return 0 end
return once(attempt, function()
  finish(id, state, body, 'disconnected', reason ~= '' and reason or cjson.null, now)
  return 1
end)

--@script current
--@include connections

local known = redis.call('GET', K(t, 'current', user, client))
local state = known and connected(known)
return state and state.instance_id

--@script sweep
--@include connections

sweep_connections()
local due = redis.call('ZCOUNT', K(t, 'beats'), '-inf', now) + redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now)
return due > 0 and 1 or 0

--@script events
-- Reads the newest events of connections up to `from`, a place: ten times a time in ms. A connect is placed by the
-- sequence of its row, an end by its time. `user` is '' for all users; `at` is the time of now, by which silent
-- connections are lost that no write has ended yet.
local most, bytes = tonumber(max_entries), tonumber(max_bytes)

local function newest(key, first)
  return read('ZRANGE', key, first, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most + 1, 'WITHSCORES') or {}
end
local function pool(name) return user == '' and K('connections', name) or K('connections', name .. '-of', user) end

local limit = from == '+inf' and at or math.min(tonumber(at), math.floor(tonumber(from) / 10))
local lists = {
  { found = newest(user == '' and K('connections', 'all') or K('connections', 'user_id', user), from), scale = 1, kind = 1 },
  { found = newest(pool('ended'), from == '+inf' and from or math.floor(tonumber(from) / 10)), scale = 10, kind = 2 },
  { found = newest(pool('beats'), limit), scale = 10, kind = 2 },
}

-- Returns the list whose next event is the newest: the greatest place; of one place connects first, then the greatest id.
local function next_list()
  local best, best_place
  for _, list in ipairs(lists) do
    list.i = list.i or 1
    local id = list.found[list.i]
    if id then
      local place = tonumber(list.found[list.i + 1]) * list.scale
      local wins = not best or place > best_place
      if best and place == best_place then wins = list.kind == best.kind and id > best.found[best.i] end
      if wins then best, best_place = list, place end
    end
  end
  return best, best_place
end

local entries, cut = {}, 0
local list, place = next_list()
while list do
  if #entries == most or bytes <= 0 then cut = 1 break end
  local id = list.found[list.i]
  local value = row('connections', id)
  entries[#entries + 1] = { list.kind, id, string.format('%.0f', place), value }
  if type(value) == 'string' then bytes = bytes - #value end
  list.i = list.i + 2
  list, place = next_list()
end
return { foreign, cut, entries }
