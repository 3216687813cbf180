--@include ../store/tables.lua
local t = 'nodes'
sweep(t)
put(t, id, load(t, id), { node_id = id, updated_at = now, ix = { { 'node_id', id } } }, record, now + tonumber(kept_ms))
if redis.call('ZCARD', K(t, 'all')) > {{NODES_MAX}} then drop(t, redis.call('ZRANGE', K(t, 'leaves'), 0, 0)[1]) end
return now
