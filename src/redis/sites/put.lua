--@include ./sites.lua

return once(attempt, function()
  local old = stored()
  if old and old.owner ~= owner then return refuse('owner_mismatch') end
  if not old then
    disown()
    if tonumber(redis.call('HGET', held, owner) or 0) >= tonumber(max_per_owner)
      or redis.call('HLEN', owners) >= tonumber(max_sites) then return refuse('capacity_exceeded') end
    redis.call('HSET', owners, site, owner)
    redis.call('HINCRBY', held, owner, 1)
    enlist()
  end
  local head = cjson.encode({ owner = owner, created_at = old and old.created_at or now, updated_at = now })
  raise('sites')
  redis.call('SET', key, head .. '\n' .. declaration)
  return { head, old and 0 or 1 }
end)
