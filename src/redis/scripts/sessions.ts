/** The scripts of the session registry: each move is checked against the state as it is at that moment. */
import { FINAL_KEPT_MS, SHARES_MAX } from '../../contract/sessions.js'
import { defineScript } from '../script.js'
import { SESSION_FIELDS } from '../session-record.js'

/** Sessions that one `open` sweeps at most of each kind: more than it adds. */
const SWEEP = 16

// `sessions:session:<id>`: a hash; `sessions:shares:<id>`: a hash, user to the end of the share and its rights;
// `sessions:bell:<id>`: a channel, rung with the name of the node that changed something. `sessions:live` and
// `sessions:final`: ids by when they expire, and by when they are forgotten.
const SESSIONS = `
local FIELDS = { ${SESSION_FIELDS.map((field) => `'${field}'`).join(', ')} }
local live, final = K('sessions', 'live'), K('sessions', 'final')
local function session_key(id) return K('sessions', 'session', id) end
local function shares_key(id) return K('sessions', 'shares', id) end
local function ring(id, who) redis.call('SPUBLISH', K('sessions', 'bell', id), who) end
local function shown(id) return { now, redis.call('HMGET', session_key(id), unpack(FIELDS)) } end

-- The state as it reads now, or nil where there is no session, or none any more.
local function state_of(id)
  local held = redis.pcall('HMGET', session_key(id), 'state', 'expires_at', 'updated_at')
  if held.err or not held[1] then return nil end
  local state, ended = held[1], tonumber(held[3])
  if state ~= 'closed' and held[2] and tonumber(held[2]) <= now then state, ended = 'expired', tonumber(held[2]) end
  if (state == 'closed' or state == 'expired') and ended + ${FINAL_KEPT_MS} <= now then return nil end
  return state
end

local function finish(id, at)
  redis.call('ZREM', live, id)
  redis.call('ZADD', final, at + ${FINAL_KEPT_MS}, id)
end

local function forget(id)
  redis.call('ZREM', final, id)
  redis.call('DEL', session_key(id), shares_key(id))
end
`

/** ARGV: 2 id, 3 most live sessions, 4 ms to live or '', then fields and values. Answers the time and the session. */
export const OPEN_SESSION = defineScript(`${SESSIONS}
local id, most = ARGV[2], tonumber(ARGV[3])
local ended = redis.call('ZRANGE', live, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP}, 'WITHSCORES')
for i = 1, #ended, 2 do finish(ended[i], tonumber(ended[i + 1])) end
for _, gone in ipairs(redis.call('ZRANGE', final, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})) do forget(gone) end
while redis.call('ZCARD', final) > most do forget(redis.call('ZRANGE', final, 0, 0)[1]) end
if redis.call('ZCOUNT', live, '(' .. now, '+inf') >= most then return refuse('capacity_exceeded') end
redis.call('HSET', session_key(id), 'session_id', id, 'state', 'pending', 'opened_at', now, 'updated_at', now,
  unpack(ARGV, 5))
local expires = '+inf'
if ARGV[4] ~= '' then
  expires = now + ARGV[4]
  redis.call('HSET', session_key(id), 'expires_at', expires)
end
redis.call('ZADD', live, expires, id)
return shown(id)`)

/** ARGV: 2 id, 3 node, 4 state, 5 the states it may be left from, each between commas, 6 reason or ''. Answers as above. */
export const MOVE_SESSION = defineScript(`${SESSIONS}
local id, to = ARGV[2], ARGV[4]
local state = state_of(id)
if not state then return refuse('session_not_found') end
if not string.find(ARGV[5], ',' .. state .. ',', 1, true) then return refuse('invalid_transition') end
redis.call('HSET', session_key(id), 'state', to, 'updated_at', now)
if to == 'closed' then
  if ARGV[6] ~= '' then redis.call('HSET', session_key(id), 'close_reason', ARGV[6]) end
  finish(id, now)
end
ring(id, ARGV[3])
return shown(id)`)

/** ARGV: 2 id, 3 node, 4 user, 5 when the share ends or '', 6 rights. */
export const SHARE_SESSION = defineScript(`${SESSIONS}
local id, shares = ARGV[2], shares_key(ARGV[2])
if not state_of(id) then return refuse('session_not_found') end
if redis.call('HLEN', shares) >= ${SHARES_MAX} and redis.call('HEXISTS', shares, ARGV[4]) == 0 then
  local all = redis.call('HGETALL', shares)
  for i = 1, #all, 2 do
    local ends = tonumber(string.match(all[i + 1], '^%d+'))
    if ends and ends <= now then redis.call('HDEL', shares, all[i]) end
  end
  if redis.call('HLEN', shares) >= ${SHARES_MAX} then return refuse('capacity_exceeded') end
end
redis.call('HSET', shares, ARGV[4], ARGV[5] .. ' ' .. ARGV[6])
ring(id, ARGV[3])
return 1`)

/** ARGV: 2 id, 3 node, 4 user. Answers whether there was a share. */
export const UNSHARE_SESSION = defineScript(`${SESSIONS}
local id = ARGV[2]
if not state_of(id) then return 0 end
local had = redis.call('HDEL', shares_key(id), ARGV[4])
if had == 1 then ring(id, ARGV[3]) end
return had`)
