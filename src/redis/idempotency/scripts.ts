/** The scripts of the idempotency keys: each can arrive twice, because every attempt has a name of its own. */
import { IDEMPOTENCY_KEPT_MS } from '../../contract/invocations.js'
import { ignoreReply, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'

/** Keys of its own that a claim looks at for one that has ended, when the viewer has no place left. */
const LOOKED_AT = 100
/** Answers that one keep sweeps at most: more than it adds. */
const SWEPT = 16

// `idem:key:<session>:<user>:<key>`: a hash, `f` the fingerprint, `a` the attempt, `at`, `until` the end of its lease,
// `ended` once it has, `answer` where there is one. `idem:of:<session>:<user>`: its keys by claim. `idem:kept:<user>`:
// answers by when they were kept, as bytes, session and key in lines; `idem:bytes:<user>`: what they come to.
const KEY_ARGS = ['user', 'session', 'name', 'attempt'] as const
const KEY = `
local key, own = K('idem', 'key', session, user, name), K('idem', 'of', session, user)
local held = redis.call('HMGET', key, 'a', 'f', 'at', 'until', 'ended', 'answer')
local function text(n) return string.format('%.0f', n) end
local kept, bytes = K('idem', 'kept', user), K('idem', 'bytes', user)
local function kept_bytes() return tonumber(redis.call('GET', bytes) or '0') or 0 end
local function kept_as(size, whose, which) return size .. '\\n' .. whose .. '\\n' .. which end
`

/** `max_keys` are those of this viewer in this session. */
export const CLAIM_KEY = defineScript(
  'idempotency.claim',
  {
    args: [...KEY_ARGS, 'fingerprint', 'lease', 'max_keys'],
    /** The state, and when it was claimed or the answer that was kept. */
    answer: (reply) => {
      const [state, value] = listOf(reply)
      return { state, value }
    },
  },
  `${KEY}
if held[1] then
  if held[2] ~= fingerprint then return { 'reused' } end
  if held[5] then return { 'ended', held[6] or '' } end
  if held[1] == attempt then return { 'claimed', held[3] } end
  if (tonumber(held[4]) or 0) > now then return { 'running' } end
  return { 'ended', '' }
end
redis.call('ZREMRANGEBYSCORE', own, '-inf', now - ${IDEMPOTENCY_KEPT_MS})
if redis.call('ZCARD', own) >= tonumber(max_keys) then
  local oldest, gone = redis.call('ZRANGE', own, 0, ${LOOKED_AT - 1}), nil
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
redis.call('PEXPIRE', key, ${IDEMPOTENCY_KEPT_MS})
redis.call('ZADD', own, text(now), name)
redis.call('PEXPIRE', own, ${IDEMPOTENCY_KEPT_MS})
return { 'claimed', text(now) }`,
)

/** `answer` may be ''; `max_bytes` are those of this viewer's answers. */
export const KEEP_ANSWER = defineScript(
  'idempotency.keep',
  { args: [...KEY_ARGS, 'answer', 'max_bytes'], answer: ignoreReply },
  `${KEY}
if held[1] ~= attempt or held[5] then return 0 end
redis.call('HSET', key, 'ended', 1)
if answer == '' then return 1 end
redis.call('HSET', key, 'answer', answer)
-- Of a former life of the key an answer of that size may be counted still.
local total = kept_bytes() + redis.call('ZADD', kept, text(now), kept_as(#answer, session, name)) * #answer
local oldest = redis.call('ZRANGE', kept, 0, ${SWEPT - 1}, 'WITHSCORES')
for i = 1, #oldest, 2 do
  local isOld = tonumber(oldest[i + 1]) <= now - ${IDEMPOTENCY_KEPT_MS}
  if not isOld and total <= tonumber(max_bytes) then break end
  local size, whose, which = string.match(oldest[i], '^(%d+)\\n([^\\n]*)\\n([^\\n]*)$')
  redis.call('ZREM', kept, oldest[i])
  if size then
    total = total - tonumber(size)
    -- The key stays: what it stood for has run, and does not run again for want of memory. An answer of another size is
    -- that of its next life.
    local shed = K('idem', 'key', whose, user, which)
    if not isOld and redis.call('HSTRLEN', shed, 'answer') == tonumber(size) then redis.call('HDEL', shed, 'answer') end
  end
end
redis.call('SET', bytes, text(math.max(0, total)), 'PX', ${2 * IDEMPOTENCY_KEPT_MS})
redis.call('PEXPIRE', kept, ${2 * IDEMPOTENCY_KEPT_MS})
return 1`,
)

/** Frees the key of an attempt that has not ended. */
export const RELEASE_KEY = defineScript(
  'idempotency.release',
  { args: KEY_ARGS, answer: ignoreReply },
  `${KEY}
if held[1] ~= attempt or held[5] then return 0 end
redis.call('DEL', key)
redis.call('ZREM', own, name)
return 1`,
)
