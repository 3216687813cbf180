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
