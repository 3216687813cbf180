/** The places that commands hold while they are tracked, for the scripts of the dispatcher: of all, of a user, and of a scope. */

// What stands where, `script-moves.ts` says.
export const DELIVERY_PLACES = `
local tracked_max, held_max = tonumber(max_tracked), tonumber(max_per_user)
-- How many commands are tracked, and how many of each user, where this run has asked.
local tracked, held = nil, {}

local function tracked_now()
  tracked = tracked or zcall('ZCARD', 'deadlines')
  return tracked
end

local function held_by(user)
  held[user] = held[user] or tonumber(zcall('HGET', 'held', user)) or 0
  return held[user]
end

local function track(user, ref, deadline)
  if zcall('ZADD', 'deadlines', deadline, ref) == 0 then return end
  tracked, held[user] = tracked and tracked + 1, nil
  held[user] = zcall('HINCRBY', 'held', user, '1')
end

-- No longer tracked: its user's share is given back with the place in the index, so that once is once.
local function untrack(user, ref)
  tracked, held[user] = nil, nil
  if zcall('ZREM', 'deadlines', ref) == 1 and zcall('HINCRBY', 'held', user, -1) <= 0 then zcall('HDEL', 'held', user) end
end

local scope_keys = {}
local function scope_key(scope)
  scope_keys[scope] = scope_keys[scope] or ended(D, 'scope', encode(scope))
  return scope_keys[scope]
end
local function sharers_key(scope, ref) return K(D, 'sharers', scope, ref) end

local function close_scope(scope)
  raise(D)
  if redis.call('EXISTS', scope_key(scope)) == 1 then return end
  zcall('ZREM', 'scopes', scope)
  zcall('ZREM', 'scope-until', scope)
  zcall('HDEL', 'capacities', scope)
end

local function release(scope, ref)
  redis.call('ZREM', scope_key(scope), ref)
  close_scope(scope)
end

-- A place in a scope, in the shard of the scope. isNews: the node has not told yet that its capacity is this.
local function reserve(scope, ref, deadline, capacity, isNews)
  raise(D)
  local key = scope_key(scope)
  local isNew = redis.call('ZADD', key, 'GT', deadline, ref) == 1
  local held = redis.call('ZCARD', key)
  if isNew and (held == 1 or isNews) then zcall('HSET', 'capacities', scope, capacity) end
  if isNew and held > capacity then
    -- Those whose deadline has passed hold no place, whether or not the loop has come by.
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now_text)
    held = redis.call('ZCARD', key)
    if held > capacity then
      release(scope, ref)
      return false
    end
  end
  if isNew and held == 1 then zcall('ZADD', 'scopes', 'NX', redis.call('INCR', K(D, 'scope-seq')), scope) end
  return true
end
`
