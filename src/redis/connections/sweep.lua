--@include ./connections.lua

sweep_connections()
local due = redis.call('ZCOUNT', K(t, 'beats'), '-inf', now) + redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now)
return due > 0 and 1 or 0
