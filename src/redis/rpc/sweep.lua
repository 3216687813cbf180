--@include ./calls.lua

sweep_calls()
-- Ended calls are placed by their time, ten places per millisecond.
local e, expired = 'ended-calls', 10 * (now - {{ENDED_CALL_KEPT_MS}})
for _, id in ipairs(redis.call('ZRANGE', K(e, 'all'), '-inf', expired, 'BYSCORE', 'LIMIT', 0, SWEEP_CALLS)) do drop(e, id) end
local due = redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) + redis.call('ZCOUNT', K(e, 'all'), '-inf', expired)
return due > 0 and 1 or 0
