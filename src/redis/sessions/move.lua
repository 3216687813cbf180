--@include ./sessions.lua

return once(attempt, function()
  local state = state_of(id)
  if not state then return refuse('session_not_found') end
  if not string.find(from, ',' .. state .. ',', 1, true) then return refuse('invalid_transition') end
  raise(t)
  redis.call('HSET', session_key(id), 'state', to, 'updated_at', now)
  if to == 'closed' then
    if reason ~= '' then redis.call('HSET', session_key(id), 'close_reason', reason) end
    finish(id, now)
  end
  announce(id, node)
  return shown(id)
end)
