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
  write(m, id, message, content)
  redis.call('ZADD', K(m, 'of', stream), message.sequence, place)
  local at = redis.call('INCR', K(m, 'seq'))
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
