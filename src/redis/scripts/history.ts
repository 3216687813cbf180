/** The scripts of the message history: bounded per stream and per shard, each message retained once. */
import { defineScript } from '../script.js'

// `streams`: a table of streams. `of:<stream>`: message ids of a stream by sequence. `messages`: all messages of the shard
// in the order of arrival, each `stream\nmessage`; `row` of the table `messages` holds one. `emptied`: the last sequence
// of streams whose messages have all left, `emptied-order` the order in which they did.
const HISTORY = `
local t, m = 'streams', 'messages'
local function evict(id, spilled)
  local message = load(m, id)
  redis.call('DEL', K(m, 'row', id))
  redis.call('ZREM', K(m, 'all'), id)
  local cut = string.find(id, '\\n', 1, true)
  local stream = string.sub(id, 1, cut - 1)
  redis.call('ZREM', K(m, 'of', stream), string.sub(id, cut + 1))
  if message and type(message.externalized) == 'table' then spilled[#spilled + 1] = message.externalized.ref end
  local state, body = load(t, stream)
  if not state then return end
  local first = redis.call('ZRANGE', K(m, 'of', stream), 0, 0)[1]
  if first then
    local oldest = load(m, stream .. '\\n' .. first)
    state.message_count = redis.call('ZCARD', K(m, 'of', stream))
    if oldest then state.first_recorded_at = oldest.recorded_at end
    save(t, stream, state, body)
    return
  end
  drop(t, stream)
  redis.call('HSET', K(m, 'emptied'), stream, state.last_sequence)
  redis.call('ZADD', K(m, 'emptied-order'), redis.call('INCR', K(m, 'seq')), stream)
end
`

/** ARGV: 2 stream, 3 message. Answers the retained row, or nothing. */
export const RETAINED = defineScript(`
local value = redis.pcall('GET', K('messages', 'row', ARGV[2] .. '\\n' .. ARGV[3]))
return type(value) == 'string' and value`)

/**
 * ARGV: 2 stream, 3 message, 4 the fields, 5 the body, 6 most messages of the stream, 7 most of the shard. Answers
 * whether the message is new, its row, and the references of payloads that left with older ones.
 */
export const APPEND = defineScript(`${HISTORY}
local stream, id = ARGV[2], ARGV[2] .. '\\n' .. ARGV[3]
local known = redis.pcall('GET', K(m, 'row', id))
if type(known) == 'string' then return { 0, known, {} } end
local message = cjson.decode(ARGV[4])
local state, body = load(t, stream)
if not state then
  state = { stream = stream, user_id = message.user_id, message_count = 0, first_recorded_at = now }
  state.ix = { { 'user_id', message.user_id } }
  state.last_sequence = tonumber(redis.call('HGET', K(m, 'emptied'), stream) or 0)
  redis.call('HDEL', K(m, 'emptied'), stream)
  redis.call('ZREM', K(m, 'emptied-order'), stream)
  put(t, stream, nil, state, '{}', '+inf')
  body = '{}'
end
state.last_sequence = state.last_sequence + 1
state.message_count = state.message_count + 1
state.last_recorded_at = now
save(t, stream, state, body)
message.sequence, message.recorded_at = state.last_sequence, now
message.ix = { { 'stream', stream } }
save(m, id, message, ARGV[5])
redis.call('ZADD', K(m, 'of', stream), message.sequence, ARGV[3])
redis.call('ZADD', K(m, 'all'), redis.call('INCR', K(m, 'seq')), id)
local spilled = {}
if state.message_count > tonumber(ARGV[6]) then
  evict(stream .. '\\n' .. redis.call('ZRANGE', K(m, 'of', stream), 0, 0)[1], spilled)
end
if redis.call('ZCARD', K(m, 'all')) > tonumber(ARGV[7]) then evict(redis.call('ZRANGE', K(m, 'all'), 0, 0)[1], spilled) end
if redis.call('ZCARD', K(m, 'emptied-order')) > tonumber(ARGV[7]) then
  local left = redis.call('ZPOPMIN', K(m, 'emptied-order'))[1]
  redis.call('HDEL', K(m, 'emptied'), left)
end
return { 1, redis.call('GET', K(m, 'row', id)), spilled }`)
