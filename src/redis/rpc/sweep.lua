--@include ./calls.lua

sweep_calls()
return redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 and 1 or 0
