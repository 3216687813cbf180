local key, own = K('idem', 'key', session, user, name), K('idem', 'of', session, user)
local held = redis.call('HMGET', key, 'a', 'f', 'at', 'until', 'ended', 'answer')
local function text(n) return string.format('%.0f', n) end
local kept, bytes = K('idem', 'kept', user), K('idem', 'bytes', user)
local function kept_bytes() return tonumber(redis.call('GET', bytes) or '0') or 0 end
local function kept_as(size, whose, which) return size .. '\n' .. whose .. '\n' .. which end
