--@part sessions
-- `session:<id>`: a hash, the session. `shares:<id>`: a hash, user to the end of the share and its rights.
-- `signals:<id>`: a channel for the name of the node that changed something. `live` and `final`: pools of ids, by when
-- sessions expire and by when they are deleted. For lists: `all`, `owner:<owner>` and `site_id:<site>`, ids by the
-- order of opening; `at:<owner>:<site>`, those that have not ended, by when they expire; `share-ends:<id>`, users by
-- when their share expires.

--@include ../store/once.lua
--@include ../store/shares.lua

-- Sessions that one write sweeps at most of each kind: more than it adds.
local SWEEP_SESSIONS = 16

local FIELDS = { {{SESSION_FIELDS}} }
local t = 'sessions'
local function session_key(id) return K(t, 'session', id) end
local function shares_key(id) return K(t, 'shares', id) end
local function ends_key(id) return K(t, 'share-ends', id) end
local function announce(id, who) redis.call('SPUBLISH', K(t, 'signals', id), who) end
local function shown(id) return { now, redis.call('HMGET', session_key(id), unpack(FIELDS)) } end

local function owner_of(id)
  local held = redis.pcall('HGET', session_key(id), 'owner')
  return type(held) == 'string' and held or nil
end

-- Returns the current state; nil for a session that does not exist or is forgotten.
local function state_of(id)
  local held = redis.pcall('HMGET', session_key(id), 'state', 'expires_at', 'updated_at')
  if held.err or not held[1] then return nil end
  local state, ended = held[1], tonumber(held[3])
  if state ~= 'closed' and held[2] and tonumber(held[2]) <= now then state, ended = 'expired', tonumber(held[2]) end
  if (state == 'closed' or state == 'expired') and ended + {{FINAL_KEPT_MS}} <= now then return nil end
  return state
end

local function site_of(id)
  local held = redis.pcall('HGET', session_key(id), 'site_id')
  return type(held) == 'string' and held or ''
end

local function finish(id, at)
  local owner = owner_of(id)
  if owner then redis.call('ZREM', K(t, 'at', owner, site_of(id)), id) end
  unplace(t, 'live', owner, id)
  if owner then hold(t, 'final', owner, id, at + {{FINAL_KEPT_MS}}) end
end

local function unlist(id, owner)
  redis.call('ZREM', K(t, 'all'), id)
  redis.call('ZREM', K(t, 'site_id', site_of(id)), id)
  if owner then
    redis.call('ZREM', K(t, 'owner', owner), id)
    redis.call('ZREM', K(t, 'at', owner, site_of(id)), id)
  end
end

local function forget(id, owner)
  owner = owner or owner_of(id)
  unhold(t, 'final', owner, id)
  unlist(id, owner)
  redis.call('DEL', session_key(id), shares_key(id), ends_key(id))
end

local function sweep_sessions(most)
  local ended = redis.call('ZRANGE', K(t, 'live'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_SESSIONS, 'WITHSCORES')
  for i = 1, #ended, 2 do finish(ended[i], tonumber(ended[i + 1])) end
  local gone = redis.call('ZRANGE', K(t, 'final'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_SESSIONS)
  for _, id in ipairs(gone) do forget(id) end
  for _ = 1, 2 * SWEEP_SESSIONS do
    if redis.call('ZCARD', K(t, 'final')) <= most then return end
    forget(surplus(t, 'final'))
  end
end

--@script open
--@include sessions
--@include ../store/arrive.lua

return once(attempt, function()
  local most = tonumber(max_sessions)
  sweep_sessions(most)
  if not has_room(K(t, 'live-of', owner), max_per_owner, K(t, 'live'), most) then return refuse('capacity_exceeded') end
  -- An id may be reused: deletes timers and shares of the earlier session.
  local before = owner_of(id)
  if before then
    unplace(t, 'live', before, id)
    unhold(t, 'final', before, id)
    unlist(id, before)
  end
  redis.call('DEL', session_key(id), shares_key(id), ends_key(id))
  local seq = arrive(t)
  write('HSET', session_key(id), 'session_id', id, 'owner', owner, 'state', 'pending', 'opened_at', now,
    'updated_at', now, 'site_id', site, unpack(fields))
  local expires = '+inf'
  if ttl ~= '' then
    expires = now + ttl
    write('HSET', session_key(id), 'expires_at', expires)
  end
  place(t, 'live', owner, id, expires)
  write('ZADD', K(t, 'all'), seq, id)
  write('ZADD', K(t, 'owner', owner), seq, id)
  write('ZADD', K(t, 'site_id', site), seq, id)
  write('ZADD', K(t, 'at', owner, site), expires, id)
  return shown(id)
end)

--@script move
--@include sessions

return once(attempt, function()
  local state = state_of(id)
  if not state then return refuse('session_not_found') end
  if not string.find(from, ',' .. state .. ',', 1, true) then return refuse('invalid_transition') end
  write('HSET', session_key(id), 'state', to, 'updated_at', now)
  if to == 'closed' then
    if reason ~= '' then write('HSET', session_key(id), 'close_reason', reason) end
    finish(id, now)
  end
  announce(id, node)
  return shown(id)
end)

--@script share
--@include sessions

return once(attempt, function()
  local shares = shares_key(id)
  local state = state_of(id)
  if not state then return refuse('session_not_found') end
  if state == 'closed' or state == 'expired' then return refuse('invalid_transition') end
  if redis.call('HLEN', shares) >= {{SHARES_MAX}} and redis.call('HEXISTS', shares, user) == 0 then
    local all = redis.call('HGETALL', shares)
    for i = 1, #all, 2 do
      local ends = tonumber(string.match(all[i + 1], '^%d+'))
      if ends and ends <= now then
        redis.call('HDEL', shares, all[i])
        redis.call('ZREM', ends_key(id), all[i])
      end
    end
    if redis.call('HLEN', shares) >= {{SHARES_MAX}} then return refuse('capacity_exceeded') end
  end
  write('HSET', shares, user, until_ms .. ' ' .. rights)
  write('ZADD', ends_key(id), until_ms == '' and '+inf' or until_ms, user)
  announce(id, node)
  return 1
end)

--@script unshare
--@include sessions

return once(attempt, function()
  if not state_of(id) then return 0 end
  local share = redis.call('HGET', shares_key(id), user)
  if not share then return 0 end
  redis.call('HDEL', shares_key(id), user)
  redis.call('ZREM', ends_key(id), user)
  local ends = tonumber(string.match(share, '^%d+'))
  if ends and ends <= now then return 0 end
  announce(id, node)
  return 1
end)

--@script sweep
--@include sessions

sweep_sessions(tonumber(max_sessions))
local due = redis.call('ZCOUNT', K(t, 'live'), '-inf', now) + redis.call('ZCOUNT', K(t, 'final'), '-inf', now)
return due > 0 and 1 or 0

--@script list
local function record(id)
  local values = read('HMGET', K(t, 'session', id), {{SESSION_FIELDS}})
  if not values then return {{FOREIGN}}, 0 end
  if not values[1] then return nil end
  local ends, bytes = K(t, 'share-ends', id), 0
  for i = 1, {{FIELDS}} do bytes = bytes + #(values[i] or '') end
  local first = read('ZRANGE', ends, '(' .. at, '(+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES') or {}
  return { values, read('ZCOUNT', ends, '(' .. at, '+inf') or 0, first[2] or false }, bytes
end
--@include ../table/listing.lua

--@script open_at
local counts = {}
for i = 1, #sites, 2 do
  counts[#counts + 1] = read('ZCOUNT', K('sessions', 'at', sites[i], sites[i + 1]), '(' .. at, '+inf') or 0
end
return { foreign, counts }
