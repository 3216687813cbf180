--@part sessions
-- The table `sessions`, whose rows are sessions, indexed by owner and site; `shares:<id>`: a hash, user to the end of the
-- share and its rights; `share-ends:<id>`: users by when their share expires; `signals:<id>`: a channel for the name of
-- the node that changed something; `open` and `final`: pools of ids, by when sessions expire and by when they are
-- deleted; `at:<owner>:<site>`: those that have not ended, by when they expire.

--@include ../store/once.lua
--@include ../store/shares.lua
--@include ../store/tables.lua

-- Sessions that one write sweeps at most of each kind: more than it adds.
local SWEEP_SESSIONS = 16

local t = 'sessions'
local function shares_key(id) return K(t, 'shares', id) end
local function ends_key(id) return K(t, 'share-ends', id) end

local function finish(id, at)
  local state = load(t, id)
  unplace(t, 'open', state and state.user_id, id)
  if not state then return end
  redis.call('ZREM', K(t, 'at', state.user_id, state.ix[2][2]), id)
  hold(t, 'final', state.user_id, id, at + {{FINAL_KEPT_MS}})
end

local function forget(id, owner)
  local state = load(t, id)
  if state then redis.call('ZREM', K(t, 'at', state.user_id, state.ix[2][2]), id) end
  unhold(t, 'final', owner or state and state.user_id, id)
  drop(t, id)
  redis.call('DEL', shares_key(id), ends_key(id))
end

local function sweep_sessions(most)
  local ended = redis.call('ZRANGE', K(t, 'open'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_SESSIONS, 'WITHSCORES')
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

return once(attempt, function()
  local most = tonumber(max_sessions)
  sweep_sessions(most)
  if not has_room(K(t, 'open-of', owner), max_per_owner, K(t, 'open'), most) then return refuse('capacity_exceeded') end
  -- An id may be reused: deletes timers and shares of the earlier session.
  local before = load(t, id)
  if before then
    unplace(t, 'open', before.user_id, id)
    forget(id)
  end
  put(t, id, nil, { user_id = owner, ix = { { 'owner', owner }, { 'site_id', site } } }, content, '+inf')
  place(t, 'open', owner, id, expires)
  write('ZADD', K(t, 'at', owner, site), expires, id)
  return 1
end)

--@script change
--@include sessions

local function put_share()
  local shares, ends = shares_key(id), string.match(share, '^%d+')
  if redis.call('HLEN', shares) >= {{SHARES_MAX}} and redis.call('HEXISTS', shares, user) == 0 then
    for _, gone in ipairs(redis.call('ZRANGE', ends_key(id), '-inf', now, 'BYSCORE')) do
      redis.call('HDEL', shares, gone)
      redis.call('ZREM', ends_key(id), gone)
    end
    if redis.call('HLEN', shares) >= {{SHARES_MAX}} then return refuse('capacity_exceeded') end
  end
  write('HSET', shares, user, share)
  write('ZADD', ends_key(id), ends or '+inf', user)
end

return once(attempt, function()
  local state, body = load(t, id)
  if body ~= expected or (redis.call('HGET', shares_key(id), user) or '') ~= expected_share then return 0 end
  local refused
  if content ~= '' then
    save(t, id, state, content)
    if isFinal == '1' then finish(id, now) end
  elseif share ~= '' then refused = put_share()
  else
    redis.call('HDEL', shares_key(id), user)
    redis.call('ZREM', ends_key(id), user)
  end
  if refused then return refused end
  redis.call('SPUBLISH', K(t, 'signals', id), node)
  return 1
end)

--@script sweep
--@include sessions

sweep_sessions(tonumber(max_sessions))
local due = redis.call('ZCOUNT', K(t, 'open'), '-inf', now) + redis.call('ZCOUNT', K(t, 'final'), '-inf', now)
return due > 0 and 1 or 0

--@script shares_of
local found = {}
for i, id in ipairs(sessions) do
  local ends = K('sessions', 'share-ends', id)
  local first = read('ZRANGE', ends, '(' .. at, '(+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES') or {}
  found[i] = { read('ZCOUNT', ends, '(' .. at, '+inf') or 0, first[2] or false }
end
return { foreign, found }

--@script open_at
local counts = {}
for i = 1, #sites, 2 do
  counts[#counts + 1] = read('ZCOUNT', K('sessions', 'at', sites[i], sites[i + 1]), '(' .. at, '+inf') or 0
end
return { foreign, counts }
