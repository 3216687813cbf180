--@script claim
--@include ../store/fair-share.lua
--@include ./claims.lua
--@include ../store/once.lua

return once(attempt, function() return claim(user, message, tonumber(ttl), tonumber(capacity)) end)

--@script release
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

--@script sweep
--@include ../store/fair-share.lua
--@include ./claims.lua

return sweep_claims(now - ttl) == SWEEP_CLAIMS and 1 or 0
