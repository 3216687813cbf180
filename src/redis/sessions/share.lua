--@include ./sessions.lua

return once(attempt, function()
  local shares = shares_key(id)
  if not state_of(id) then return refuse('session_not_found') end
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
  raise(t)
  redis.call('HSET', shares, user, until_ms .. ' ' .. rights)
  redis.call('ZADD', ends_key(id), until_ms == '' and '+inf' or until_ms, user)
  announce(id, node)
  return 1
end)
