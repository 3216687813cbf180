--@part places
-- `streams`: a table of streams. `messages:of:<stream>`: message ids of a stream by sequence. `messages:row:<id>`: a
-- message, with the id `stream\nmessage`. Shares: `history` of all messages, `spilled` of those with a payload in the
-- spill store, `emptied` of streams without messages (`emptied:last`: sequence and user of each). `spilled:loose`:
-- references without a message, by the time from which they may be deleted.

--@include ../store/tables.lua

local t, m = 'streams', 'messages'

-- Returns the name of a message within its stream. A stream belongs to its first user: other users' messages carry
-- their user.
local function place_of(state, message_id, user)
  return state and state.user_id ~= user and message_id .. '\n' .. user or message_id
end

--@part history
--@include places

-- How long a caller has to delete a loose payload that it received, before the next caller receives it.
local LOOSE_MS = 60000

local function loosen(ref, at) write('ZADD', K('spilled', 'loose'), at, ref) end

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
  write('HSET', K('emptied', 'last'), stream, state.last_sequence .. '\n' .. state.user_id)
  hold('emptied', state.user_id, stream, write('INCR', K(m, 'seq')), 0)
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

--@part retain
local state, body = load(t, stream)
local place = place_of(state, message_id, user)
local id = stream .. '\n' .. place
local known = redis.pcall('GET', K(m, 'row', id))
if type(known) ~= 'string' then known = nil end
local earlier = known and load(m, id)
-- The same attempt has arrived before, and was executed.
local is_again = earlier and earlier.attempt == attempt

local function retain()
  if known then
    if ref ~= '' and not is_again then loosen(ref, now) end
    return { is_again and 1 or 0, known, take_loose(tonumber(handed_out)) }
  end
  -- Given up so long ago that the payload may have been deleted.
  if ref ~= '' and redis.call('ZREM', K('spilled', 'loose'), ref) == 0 then return { {{GIVEN_UP}} } end
  local message = cjson.decode(fields)
  if not state then
    state = { stream = stream, user_id = message.user_id, message_count = 0, first_recorded_at = now }
    state.ix = { { 'user_id', message.user_id } }
    state.last_sequence = recall(stream)
    put(t, stream, nil, state, '{}', '+inf')
    body = '{}'
  end
  state.last_sequence = state.last_sequence + 1
  state.message_count = state.message_count + 1
  state.last_recorded_at = now
  save(t, stream, state, body)
  message.sequence, message.recorded_at = state.last_sequence, now
  message.attempt, message.size = attempt, tonumber(size)
  if place ~= message_id then message.is_guest = true end
  message.ix = { { 'stream', stream } }
  save(m, id, message, content, true)
  write('ZADD', K(m, 'of', stream), message.sequence, place)
  local at = write('INCR', K(m, 'seq'))
  hold('history', message.user_id, id, at, message.size)
  if ref ~= '' then hold('spilled', message.user_id, id, at, tonumber(ref_bytes)) end
  if state.message_count > tonumber(max_per_stream) then
    local oldest = stream .. '\n' .. redis.call('ZRANGE', K(m, 'of', stream), 0, 0)[1]
    local leaving = load(m, oldest)
    evict(oldest, leaving and leaving.user_id or state.user_id)
  end
  local bounds = { entries = max_messages, entries_per_user = max_per_user }
  bounds.bytes, bounds.bytes_per_user = max_bytes, max_bytes_per_user
  make_room('history', message.user_id, id, bounds, evict)
  local spilled_bounds = { bytes = max_spilled_bytes, bytes_per_user = max_spilled_bytes_per_user }
  make_room('spilled', message.user_id, id, spilled_bounds, evict)
  make_room('emptied', '', '', { entries = max_messages }, recall)
  return { 1, redis.call('GET', K(m, 'row', id)), take_loose(tonumber(handed_out)) }
end

--@script append
--@include ../store/fair-share.lua
--@include history
--@include retain

return retain()

--@script ingest
--@include ../store/fair-share.lua
--@include ../deduplicator/claims.lua
--@include history
--@include retain

local answer = retain()
if answer[1] ~= {{GIVEN_UP}} and not is_again then
  claim(user, id, tonumber(ttl), tonumber(capacity))
end
return answer

--@script prepare
--@include places

local value = redis.pcall('GET', K(m, 'row', stream .. '\n' .. place_of(load(t, stream), message_id, user)))
if type(value) == 'string' then return value end
write('ZADD', K('spilled', 'loose'), now + spared, ref)
return false

--@script forget_payloads
redis.call('ZREM', K('spilled', 'loose'), unpack(refs))
return 1
