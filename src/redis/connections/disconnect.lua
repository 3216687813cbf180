--@include ./connections.lua

sweep_connections()
local state, body = connected(id)
if not state and redis.call('EXISTS', K('once', attempt)) == 0 then return 0 end
return once(attempt, function()
  finish(id, state, body, 'disconnected', reason ~= '' and reason or cjson.null, now)
  return 1
end)
