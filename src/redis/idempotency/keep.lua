--@include ./key.lua

-- Maximum number of answers that one write sweeps: more than it adds.
local SWEPT = 16

if held[1] ~= attempt or held[5] then return 0 end
redis.call('HSET', key, 'ended', 1)
if answer == '' then return 1 end
redis.call('HSET', key, 'answer', answer)
-- An earlier answer of the key with the same size may already be counted.
local total = kept_bytes() + redis.call('ZADD', kept, text(now), kept_as(#answer, session, name)) * #answer
local oldest = redis.call('ZRANGE', kept, 0, SWEPT - 1, 'WITHSCORES')
for i = 1, #oldest, 2 do
  local isOld = tonumber(oldest[i + 1]) <= now - {{KEPT_MS}}
  if not isOld and total <= tonumber(max_bytes) then break end
  local size, whose, which = string.match(oldest[i], '^(%d+)\n([^\n]*)\n([^\n]*)$')
  redis.call('ZREM', kept, oldest[i])
  if size then
    total = total - tonumber(size)
    -- The key stays without its answer, so that its action does not run again. An answer of another size belongs to a
    -- later use of the key.
    local shed = K('idem', 'key', whose, user, which)
    if not isOld and redis.call('HSTRLEN', shed, 'answer') == tonumber(size) then redis.call('HDEL', shed, 'answer') end
  end
end
redis.call('SET', bytes, text(math.max(0, total)), 'PX', 2 * {{KEPT_MS}})
redis.call('PEXPIRE', kept, 2 * {{KEPT_MS}})
return 1
