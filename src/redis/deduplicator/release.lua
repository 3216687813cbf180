--@include ../store/fair-share.lua
--@include ./claims.lua
--@include ../store/once.lua

return once(attempt, function()
  local since = redis.call('ZSCORE', K(d, 'of', user), message)
  if not since or tonumber(since) <= now - ttl then return 0 end
  count(user, 'accepted', -1)
  forget(user, message)
  return 1
end)
