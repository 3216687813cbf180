--@part key
-- `idem:key:<session>:<user>:<key>`: a hash; `f` the fingerprint, `a` the attempt, `at` the time, `until` the end of
-- its lease, `ended` once it has ended, `answer` if there is one. `idem:of:<session>:<user>`: keys by time of the
-- claim. `idem:kept:<user>`: answers by time, as bytes, session and key in lines; `idem:bytes:<user>`: total size of
-- these answers in bytes.

local key, own = K('idem', 'key', session, user, name), K('idem', 'of', session, user)
local held = redis.call('HMGET', key, 'a', 'f', 'at', 'until', 'ended', 'answer')
local function text(n) return string.format('%.0f', n) end
local kept, bytes = K('idem', 'kept', user), K('idem', 'bytes', user)
local function kept_bytes() return tonumber(redis.call('GET', bytes) or '0') or 0 end
local function kept_as(size, whose, which) return size .. '\n' .. whose .. '\n' .. which end

--@script claim
--@include key

-- Maximum number of the viewer's keys that a claim examines to replace an ended one when the limit is reached.
local LOOKED_AT = 100

-- What this gets is decided in rules/idempotency.ts.
if held[1] then return { text(now), unpack(held) } end
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
local at, till = text(now), text(now + lease)
redis.call('HSET', key, 'a', attempt, 'f', fingerprint, 'at', at, 'until', till)
redis.call('PEXPIRE', key, {{KEPT_MS}})
redis.call('ZADD', own, at, name)
redis.call('PEXPIRE', own, {{KEPT_MS}})
return { at, attempt, fingerprint, at, till, false, false }

--@script keep
--@include key

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

--@script release
--@include key

if held[1] ~= attempt or held[5] then return 0 end
redis.call('DEL', key)
redis.call('ZREM', own, name)
return 1
