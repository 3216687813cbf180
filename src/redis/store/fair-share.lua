-- Shares of users in a shard: when a limit is exceeded, the user with the largest share loses the oldest entry. Keys of
-- a share `s`: `of:<user>`: ids of a user by arrival; `entries` and `bytes`: users by the size of their share; `held`:
-- a hash with both totals.

-- Maximum number of evictions by one write. A write adds one entry of at most 64 KiB, and entries have at least 512
-- bytes: more is only necessary after a limit was lowered, and then the next writes continue.
local EVICTIONS = 256

local function hold(s, user, id, at, bytes)
  if write('ZADD', K(s, 'of', user), at, id) == 0 then return end
  write('ZADD', K(s, 'entries'), redis.call('ZCARD', K(s, 'of', user)), user)
  write('HINCRBY', K(s, 'held'), 'entries', 1)
  if bytes == 0 then return end
  write('ZINCRBY', K(s, 'bytes'), bytes, user)
  write('HINCRBY', K(s, 'held'), 'bytes', bytes)
end

local function yield(s, user, id, bytes)
  if redis.call('ZREM', K(s, 'of', user), id) == 0 then return end
  write('HINCRBY', K(s, 'held'), 'entries', -1)
  local left = redis.call('ZCARD', K(s, 'of', user))
  if left == 0 then
    -- With the last entry, resets a sum that may be wrong.
    bytes = tonumber(redis.call('ZSCORE', K(s, 'bytes'), user) or 0)
    redis.call('ZREM', K(s, 'bytes'), user)
    redis.call('ZREM', K(s, 'entries'), user)
  else
    write('ZADD', K(s, 'entries'), left, user)
    if bytes ~= 0 then write('ZINCRBY', K(s, 'bytes'), -bytes, user) end
  end
  if bytes ~= 0 then write('HINCRBY', K(s, 'held'), 'bytes', -bytes) end
end

-- Returns whose entry to evict for `added` of `user` to stay, and which: never `added` itself.
local function excess(s, user, added, bounds)
  local function over(held, bound) return bound and tonumber(held or 0) > tonumber(bound) end
  local function oldest(holder)
    local first = holder and redis.call('ZRANGE', K(s, 'of', holder), 0, 1) or {}
    local id = first[1]
    -- Within one millisecond the new entry may come first. The same id of another user is another entry.
    if holder == user and id == added then id = first[2] end
    if id then return holder, id end
  end
  local function heaviest(by)
    local top = redis.call('ZRANGE', K(s, by), 0, 1, 'REV')
    if top[1] == user and redis.call('ZCARD', K(s, 'of', user)) == 1 then return top[2] end
    return top[1]
  end
  if over(redis.call('ZSCORE', K(s, 'entries'), user), bounds.entries_per_user)
    or over(redis.call('ZSCORE', K(s, 'bytes'), user), bounds.bytes_per_user) then return oldest(user) end
  local held = redis.call('HMGET', K(s, 'held'), 'entries', 'bytes')
  if over(held[1], bounds.entries) then return oldest(heaviest('entries')) end
  if over(held[2], bounds.bytes) then return oldest(heaviest('bytes')) end
end

local function make_room(s, user, added, bounds, evict)
  for _ = 1, EVICTIONS do
    local holder, id = excess(s, user, added, bounds)
    if not id then return end
    evict(id, holder)
    yield(s, holder, id, 0)
  end
end
