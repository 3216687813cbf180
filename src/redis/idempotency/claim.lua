--@include ./key.lua

-- Maximum number of the viewer's keys that a claim examines to replace an ended one when the limit is reached.
local LOOKED_AT = 100

if held[1] then
  if held[2] ~= fingerprint then return { 'reused' } end
  if held[5] then return { 'ended', held[6] or '' } end
  if held[1] == attempt then return { 'claimed', held[3] } end
  if (tonumber(held[4]) or 0) > now then return { 'running' } end
  return { 'ended', '' }
end
redis.call('ZREMRANGEBYSCORE', own, '-inf', now - {{KEPT_MS}})
if redis.call('ZCARD', own) >= tonumber(max_keys) then
  local oldest, gone = redis.call('ZRANGE', own, 0, LOOKED_AT - 1), nil
  for i = 1, #oldest do
    local other = K('idem', 'key', session, user, oldest[i])
    local state = redis.call('HMGET', other, 'ended', 'until')
    if state[1] or (tonumber(state[2]) or 0) <= now then
      local size = redis.call('HSTRLEN', other, 'answer')
      redis.call('DEL', other)
      redis.call('ZREM', own, oldest[i])
      if redis.call('ZREM', kept, kept_as(size, session, oldest[i])) == 1 then
        redis.call('SET', bytes, text(math.max(0, kept_bytes() - size)), 'KEEPTTL')
      end
      gone = true
      break
    end
  end
  if not gone then return refuse('capacity_exceeded') end
end
redis.call('HSET', key, 'a', attempt, 'f', fingerprint, 'at', text(now), 'until', text(now + lease))
redis.call('PEXPIRE', key, {{KEPT_MS}})
redis.call('ZADD', own, text(now), name)
redis.call('PEXPIRE', own, {{KEPT_MS}})
return { 'claimed', text(now) }
