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
  write('SET', key, number)
  held, isOpen = number, as == 'open'
end
if isOpen and as == 'open' then
  write('SET', open, '1')
  return held .. '?'
end
redis.call('DEL', open)
return held

--@script renew
-- Renews the leases of some keys of this shard, and gives one to keys that have no end. All nodes share the position.
--@include ./keys.lua
--@include ./lease.lua

-- Keys of the store that one call looks at: with a call every 10 s, 130 million in half a lease.
local KEYS_A_CALL = '1000'

local time = redis.call('TIME')
begin_lease(time[1] * 1000)
local function scan(position) return redis.pcall('SCAN', position, 'MATCH', KEYS[1] .. '*', 'COUNT', KEYS_A_CALL) end
local position = redis.pcall('GET', K('renewed'))
local page = type(position) == 'string' and scan(position)
-- None is known, or another application has written there.
if not page or page.err then page = scan('0') end
if page.err then return page end
for _, key in ipairs(page[2]) do
  local ends = redis.call('PEXPIRETIME', key)
  if ends == -1 or (ends % DAY_MS == 0 and tonumber(lease_end()) - ends > LEASE_DAYS * DAY_MS / 2) then
    redis.call('PEXPIREAT', key, lease_end())
  end
end
write('SET', K('renewed'), page[1])
