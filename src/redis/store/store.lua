--@script time
-- The clock of the store that holds the shard. A script, because a client sends a bare `TIME` to a node of its choice.
return redis.call('TIME')

--@script claim_shards
-- Gives a shard its number of shards where it has none, or an open one. `ends` is the instant at which this is given
-- up.
local key, open = KEYS[1] .. 'shards', KEYS[1] .. 'shards-open'
--@include ./fence.lua

local held = redis.pcall('GET', key)
if type(held) == 'table' then return held end
local isOpen = held and redis.call('EXISTS', open) == 1
if not held or (isOpen and as == 'given') then
  redis.call('SET', key, number)
  held, isOpen = number, as == 'open'
end
if isOpen and as == 'open' then
  redis.call('SET', open, '1')
  return held .. '?'
end
redis.call('DEL', open)
return held
