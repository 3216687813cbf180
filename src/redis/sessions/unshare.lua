--@include ./sessions.lua

return once(attempt, function()
  if not state_of(id) then return 0 end
  local share = redis.call('HGET', shares_key(id), user)
  if not share then return 0 end
  redis.call('HDEL', shares_key(id), user)
  redis.call('ZREM', ends_key(id), user)
  local ends = tonumber(string.match(share, '^%d+'))
  if ends and ends <= now then return 0 end
  raise(t)
  announce(id, node)
  return 1
end)
