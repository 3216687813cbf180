--@include ./alive.lua

sweep(t)
local state, body = alive()
if (not state or state.status == 'closed') and is_new(attempt) then return 0 end
return once(attempt, function()
  for field, value in pairs(cjson.decode(change)) do state[field] = value end
  state.status = 'closed'
  state.updated_at = now
  index_task(state, nil)
  put(t, id, state, state, body, now + state.ttl_ms)
  return { now + state.ttl_ms, tostring(state.sent) }
end)
