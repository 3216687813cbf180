-- What `defineScript` puts before every script that writes: keys, the clock and the checks.
--
-- `sender` holds three values: the injected time, if any; the instant from which on the script must do nothing, because
-- its sender has given it up by then; and the number of shards that the sender uses. Each shard has that number written
-- down: a store that lost it, or has another one, is not written to before this is cleared up.

--@include ./keys.lua

local frozen, ends, shards = string.match(sender, '^(%S*) (%d+) (%d+)$')
--@include ./fence.lua

local now = tonumber(frozen) or stored_now
if redis.pcall('GET', K('shards')) ~= shards then return redis.error_reply('SHARDS are other ones') end

-- Writes the version of table `t`, once a script. What frees memory comes before it: in a full store this write fails.
local raised = {}
local function raise(t)
  if raised[t] then return end
  redis.call('SET', K(t, 'version'), time[1] .. '.' .. time[2])
  -- Not before: in a full store the write fails, and the next call of the run must fail by it, too.
  raised[t] = true
end

local function refuse(code) return redis.error_reply('REFUSE ' .. code) end
