--@include ./connections.lua

local known = redis.call('GET', K(t, 'current', user, client))
local state = known and connected(known)
return state and state.instance_id
