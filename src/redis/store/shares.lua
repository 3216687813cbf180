-- Pools that all users share, each user with a part that others cannot use up. A pool `p` of `t` is a sorted set of ids
-- by an instant; `t:p-of:<user>` is the part of one user. Where a pool evicts its surplus, `t:p-holders` has the users
-- by the size of their part.
local function place(t, p, user, id, at)
  write('ZADD', K(t, p), at, id)
  write('ZADD', K(t, p .. '-of', user), at, id)
end

local function unplace(t, p, user, id)
  redis.call('ZREM', K(t, p), id)
  if user then redis.call('ZREM', K(t, p .. '-of', user), id) end
end

-- The same for a pool that evicts its surplus, and so has to know who holds most.
local function hold(t, p, user, id, at)
  place(t, p, user, id, at)
  write('ZADD', K(t, p .. '-holders'), redis.call('ZCARD', K(t, p .. '-of', user)), user)
end

local function unhold(t, p, user, id)
  unplace(t, p, user, id)
  if not user then return end
  local left = redis.call('ZCARD', K(t, p .. '-of', user))
  if left > 0 then write('ZADD', K(t, p .. '-holders'), left, user)
  else redis.call('ZREM', K(t, p .. '-holders'), user) end
end

-- Returns the id to evict and its user: the oldest one of the user who holds most.
local function surplus(t, p)
  local user = redis.call('ZRANGE', K(t, p .. '-holders'), 0, 0, 'REV')[1]
  local id = user and redis.call('ZRANGE', K(t, p .. '-of', user), 0, 0)[1]
  if id then return id, user end
  return redis.call('ZRANGE', K(t, p), 0, 0)[1]
end

-- Whether one more fits the limit of its user and that of the pool. Expired ids do not count.
local function has_room(own, own_most, all, most)
  local from = string.format('(%.0f', now)
  return redis.call('ZCOUNT', own, from, '+inf') < tonumber(own_most)
    and redis.call('ZCOUNT', all, from, '+inf') < tonumber(most)
end
