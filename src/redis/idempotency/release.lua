--@include ./key.lua

if held[1] ~= attempt or held[5] then return 0 end
redis.call('DEL', key)
redis.call('ZREM', own, name)
return 1
