--@include ../store/tables.lua

local more = 0
for _, t in ipairs(tables) do
  sweep(t)
  if redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 then more = 1 end
end
return more
