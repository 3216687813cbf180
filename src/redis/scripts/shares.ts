/** What the scripts of a pool that all users share begin with: nobody's part of it is another's to take. */

/**
 * A pool `p` of `t` is a sorted set of ids by an instant; `t:p-of:<user>` is the part of one user, and `t:p-holders` has
 * the users by the size of their part.
 */
export const SHARES = `
local function hold(t, p, user, id, at)
  local own = K(t, p .. '-of', user)
  redis.call('ZADD', K(t, p), at, id)
  redis.call('ZADD', own, at, id)
  redis.call('ZADD', K(t, p .. '-holders'), redis.call('ZCARD', own), user)
end

local function let_go(t, p, user, id)
  redis.call('ZREM', K(t, p), id)
  if not user then return end
  local own = K(t, p .. '-of', user)
  redis.call('ZREM', own, id)
  local left = redis.call('ZCARD', own)
  if left > 0 then redis.call('ZADD', K(t, p .. '-holders'), left, user)
  else redis.call('ZREM', K(t, p .. '-holders'), user) end
end

-- Which one goes when there are too many, and whose it is: the oldest of whoever has most.
local function surplus(t, p)
  local user = redis.call('ZRANGE', K(t, p .. '-holders'), 0, 0, 'REV')[1]
  local id = user and redis.call('ZRANGE', K(t, p .. '-of', user), 0, 0)[1]
  if id then return id, user end
  return redis.call('ZRANGE', K(t, p), 0, 0)[1]
end

-- Whether one more of the user's is within its share and within the pool. What has run out by now does not count.
local function has_room(t, p, user, own_most, most)
  local from = string.format('(%.0f', now)
  return redis.call('ZCOUNT', K(t, p .. '-of', user), from, '+inf') < tonumber(own_most)
    and redis.call('ZCOUNT', K(t, p), from, '+inf') < tonumber(most)
end
`
