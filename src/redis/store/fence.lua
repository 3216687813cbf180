-- Stops a script that arrives after its sender gave it up: at `ends`, in epoch ms of this store's clock (fence.ts).
-- Sets `stored_now`, the time of the store in epoch ms.
local time = redis.call('TIME')
local stored_now = time[1] * 1000 + math.floor(time[2] / 1000)
if stored_now >= tonumber(ends) then return redis.error_reply(string.format('LATE %.0f', stored_now)) end
--@include ./lease.lua
begin_lease(stored_now)
