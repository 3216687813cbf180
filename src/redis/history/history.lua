--@include ./places.lua

-- How long a caller has to delete a loose payload that it received, before the next caller receives it.
local LOOSE_MS = 60000

local function loosen(ref, at) redis.call('ZADD', K('spilled', 'loose'), at, ref) end

local function evict(id, user)
  local message = load(m, id)
  local cut = string.find(id, '\n', 1, true)
  local stream = string.sub(id, 1, cut - 1)
  redis.call('DEL', K(m, 'row', id))
  redis.call('ZREM', K(m, 'of', stream), string.sub(id, cut + 1))
  local aside = message and type(message.externalized) == 'table' and message.externalized
  if aside then loosen(aside.ref, now) end
  yield('history', user, id, message and tonumber(message.size) or 0)
  yield('spilled', user, id, aside and tonumber(aside.bytes) or 0)
  local state, body = load(t, stream)
  if not state then return end
  local first = redis.call('ZRANGE', K(m, 'of', stream), 0, 0)[1]
  if first then
    local oldest = load(m, stream .. '\n' .. first)
    state.message_count = redis.call('ZCARD', K(m, 'of', stream))
    if oldest then state.first_recorded_at = oldest.recorded_at end
    save(t, stream, state, body)
    return
  end
  drop(t, stream)
  redis.call('HSET', K('emptied', 'last'), stream, state.last_sequence .. '\n' .. state.user_id)
  hold('emptied', state.user_id, stream, redis.call('INCR', K(m, 'seq')), 0)
end

-- Removes the last sequence number of an emptied stream, and returns it; 0 for none.
local function recall(stream)
  local last = redis.call('HGET', K('emptied', 'last'), stream)
  local cut = last and string.find(last, '\n', 1, true)
  if not cut then return 0 end
  redis.call('HDEL', K('emptied', 'last'), stream)
  yield('emptied', string.sub(last, cut + 1), stream, 0)
  return tonumber(string.sub(last, 1, cut - 1)) or 0
end

-- Returns loose references for the caller to delete, each to one caller at a time.
local function take_loose(count)
  if count == 0 then return {} end
  local due = redis.call('ZRANGE', K('spilled', 'loose'), '-inf', now, 'BYSCORE', 'LIMIT', 0, count)
  for i = 1, #due do loosen(due[i], now + LOOSE_MS) end
  return due
end
