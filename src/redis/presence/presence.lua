-- Rows of table `t` that expire unless they are reported again. An id is claimed in a shard of its own where a
-- deployment has several.

--@script limit
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then
  claim.until_ms = tonumber(until_ms)
  redis.call('SET', key, cjson.encode(claim), 'PX', math.max(1, 2 * (claim.until_ms - now)))
end
return 1

--@script claim
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
local held = good and claim.until_ms > now
if held and (claim.user_id ~= user or claim.client_id ~= client) then return refuse('identity_conflict') end
local made = { user_id = user, client_id = client, until_ms = now + 2 * ttl, attempt = attempt }
-- Twice the validity, so that an injected clock that lags does not lose the claim.
redis.call('SET', key, cjson.encode(made), 'PX', 4 * ttl)
return 1

--@script unclaim
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then redis.call('DEL', key) end
return 1

--@script sweep
--@include ../store/tables.lua

local more = 0
for _, t in ipairs(tables) do
  sweep(t)
  if redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 then more = 1 end
end
return more
