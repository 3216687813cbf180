--@include ./places.lua

local value = redis.pcall('GET', K(m, 'row', stream .. '\n' .. place_of(load(t, stream), message_id, user)))
if type(value) == 'string' then return value end
redis.call('ZADD', K('spilled', 'loose'), now + spared, ref)
return false
