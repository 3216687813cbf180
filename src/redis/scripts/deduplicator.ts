/** The scripts of the deduplicator: who claimed what when, per shard and per user. */
import { defineScript } from '../script.js'

// `seen`: claims of the shard by time, each `user\nmessage` (ids hold no control character); `of:<user>`: messages of one
// user by time; `counts` and `counts:<user>`: counters.
const CLAIMS = `
local t = 'dedup'
local function forget(user, message)
  redis.call('ZREM', K(t, 'seen'), user .. '\\n' .. message)
  redis.call('ZREM', K(t, 'of', user), message)
  if redis.call('EXISTS', K(t, 'of', user)) == 0 then redis.call('DEL', K(t, 'counts', user)) end
end
local function forgetPair(pair)
  local cut = string.find(pair, '\\n', 1, true)
  if cut then forget(string.sub(pair, 1, cut - 1), string.sub(pair, cut + 1)) else redis.call('ZREM', K(t, 'seen'), pair) end
end
`

/** Expired claims that one claim sweeps at most, of the shard and of its own user each. */
const SWEEP = 64

/** ARGV: 2 user, 3 message, 4 ttl, 5 capacity. Answers 1 when it is the first. */
export const CLAIM_MESSAGE = defineScript(`${CLAIMS}
local user, message, ttl, capacity = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
redis.call('HSET', K(t, 'counts'), 'capacity', capacity, 'ttl_ms', ttl)
local due = now - ttl
for _, old in ipairs(redis.call('ZRANGE', K(t, 'of', user), '-inf', due, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do forget(user, old) end
for _, pair in ipairs(redis.call('ZRANGE', K(t, 'seen'), '-inf', due, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do forgetPair(pair) end
local since = redis.call('ZSCORE', K(t, 'of', user), message)
if since and tonumber(since) > due then
  redis.call('HINCRBY', K(t, 'counts'), 'duplicates', 1)
  redis.call('HINCRBY', K(t, 'counts', user), 'duplicates', 1)
  return 0
end
if since then forget(user, message) end
if redis.call('ZCARD', K(t, 'seen')) >= capacity then
  redis.call('HINCRBY', K(t, 'counts'), 'evicted', 1)
  forgetPair(redis.call('ZRANGE', K(t, 'seen'), 0, 0)[1])
end
redis.call('ZADD', K(t, 'seen'), now, user .. '\\n' .. message)
redis.call('ZADD', K(t, 'of', user), now, message)
redis.call('HINCRBY', K(t, 'counts'), 'accepted', 1)
redis.call('HINCRBY', K(t, 'counts', user), 'accepted', 1)
return 1`)

/** ARGV: 2 user, 3 message. Answers 1 when there was a claim. */
export const RELEASE_MESSAGE = defineScript(`${CLAIMS}
if not redis.call('ZSCORE', K(t, 'of', ARGV[2]), ARGV[3]) then return 0 end
forget(ARGV[2], ARGV[3])
return 1`)
