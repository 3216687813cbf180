--@include ./sites.lua

return once(attempt, function()
  local old = stored()
  if not old or (owner ~= '' and old.owner ~= owner) then return 0 end
  redis.call('DEL', key)
  raise('sites')
  disown()
  return 1
end)
