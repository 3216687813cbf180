-- The first part of every script that writes (see `defineScript`): keys, the clock and the checks.
--
-- `sender` holds three values: the injected time, if any; the instant after which the script must do nothing, because
-- its sender has given up; and the number of shards that the sender uses. Each shard stores that number. A shard that
-- lost it, or has another one, is not written to until this is resolved.

--@include ./keys.lua

local frozen, ends, shards = string.match(sender, '^(%S*) (%d+) (%d+)$')
--@include ./fence.lua

local now = tonumber(frozen) or stored_now
if redis.pcall('GET', K('shards')) ~= shards then return redis.error_reply('SHARDS are other ones') end

local function refuse(code) return redis.error_reply('REFUSE ' .. code) end
