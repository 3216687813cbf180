--@include ./calls.lua

local call = load(t, id)
if how ~= '' then
  if call and call.attempt == attempt then end_call(id, how, call) end
  redis.call('SET', K(t, 'over', attempt), 1, 'PX', NAMED_MS)
end
if redis.call('GET', K(t, 'reply-to', id)) ~= attempt then return nil end
return redis.call('GET', K(t, 'reply', id))
