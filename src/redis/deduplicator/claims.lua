-- The share `dedup` holds the claims of each user by time: `stream\nmessage`, or the message id where a claim has no
-- stream (ids contain no control character). `seen`: claims of the shard by time, `user\n` and the same. `counts` and
-- `counts:<user>`: counters.
-- In Lua and not in rules/: a claim changes counters and shares that every other claim of the shard changes too, so an
-- optimistic write would have to be repeated all the time.

-- Expired claims that one claim sweeps at most, of the shard and of its user each.
local SWEEP_CLAIMS = 64

local d = 'dedup'
local function forget(user, message)
  redis.call('ZREM', K(d, 'seen'), user .. '\n' .. message)
  yield(d, user, message, 0)
  if redis.call('EXISTS', K(d, 'of', user)) == 0 then redis.call('DEL', K(d, 'counts', user)) end
end
local function forget_claim(claim)
  local cut = string.find(claim, '\n', 1, true)
  if cut then forget(string.sub(claim, 1, cut - 1), string.sub(claim, cut + 1))
  else redis.call('ZREM', K(d, 'seen'), claim) end
end
local function count(user, name, by)
  write('HINCRBY', K(d, 'counts'), name, by)
  write('HINCRBY', K(d, 'counts', user), name, by)
end
local function due_of(key, due) return redis.call('ZRANGE', key, '-inf', due, 'BYSCORE', 'LIMIT', 0, SWEEP_CLAIMS) end
-- Deletes expired claims of the shard, up to the limit of one step, and returns how many.
local function sweep_claims(due)
  local old = due_of(K(d, 'seen'), due)
  for i = 1, #old do forget_claim(old[i]) end
  return #old
end
-- Returns 1 for the first claim, 0 for a duplicate.
local function claim(user, message, ttl, capacity)
  write('HSET', K(d, 'counts'), 'capacity', capacity, 'ttl_ms', ttl)
  local due = now - ttl
  for _, old in ipairs(due_of(K(d, 'of', user), due)) do forget(user, old) end
  sweep_claims(due)
  local since = redis.call('ZSCORE', K(d, 'of', user), message)
  if since and tonumber(since) > due then
    count(user, 'duplicates', 1)
    return 0
  end
  if since then forget(user, message) end
  write('ZADD', K(d, 'seen'), now, user .. '\n' .. message)
  hold(d, user, message, now, 0)
  make_room(d, user, message, { entries = capacity }, function(old, holder)
    write('HINCRBY', K(d, 'counts'), 'evicted', 1)
    forget(holder, old)
  end)
  count(user, 'accepted', 1)
  return 1
end
