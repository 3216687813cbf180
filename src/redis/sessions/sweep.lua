--@include ./sessions.lua

sweep_sessions(tonumber(max_sessions))
local due = redis.call('ZCOUNT', K(t, 'live'), '-inf', now) + redis.call('ZCOUNT', K(t, 'final'), '-inf', now)
return due > 0 and 1 or 0
