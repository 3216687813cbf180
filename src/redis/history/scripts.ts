/** The scripts of the message history: bounded per stream, per user and per shard, each message retained once. */

import { CLAIMS } from '../deduplicator/scripts.js'
import type { Arguments } from '../store/arguments.js'
import { FAIR_SHARE } from '../store/fair-share.js'
import { ignoreReply, listOf, parseText, type StoreReply, strings } from '../store/reply.js'
import { defineScript } from '../store/script.js'

/** How long whoever was handed a loose payload has to delete it before the next is asked to. */
const LOOSE_MS = 60_000

/** Where nothing was retained, because the payload may have been deleted by now. */
const GIVEN_UP = -1

// `streams`: a table of streams. `messages:of:<stream>`: message ids of a stream by sequence; `row` of the table
// `messages` holds one, under `stream\nmessage`. Shares: `history` of all messages, `spilled` of those whose payload is
// in the spill store, `emptied` of streams whose messages have all left (`last` of it: sequence and user of each).
// `spilled:loose`: references that no message holds, by the time from which they may be deleted.
const PLACES = `
local t, m = 'streams', 'messages'

-- What a message is known by in its stream, which is its first user's: of another one by the user, too.
local function place_of(state, message_id, user)
  return state and state.user_id ~= user and message_id .. '\\n' .. user or message_id
end
`

const HISTORY = `${PLACES}
local function loosen(ref, at) redis.call('ZADD', K('spilled', 'loose'), at, ref) end

local function evict(id, user)
  local message = load(m, id)
  local cut = string.find(id, '\\n', 1, true)
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
    local oldest = load(m, stream .. '\\n' .. first)
    state.message_count = redis.call('ZCARD', K(m, 'of', stream))
    if oldest then state.first_recorded_at = oldest.recorded_at end
    save(t, stream, state, body)
    return
  end
  drop(t, stream)
  redis.call('HSET', K('emptied', 'last'), stream, state.last_sequence .. '\\n' .. state.user_id)
  hold('emptied', state.user_id, stream, redis.call('INCR', K(m, 'seq')), 0)
end

-- The last sequence number of an emptied stream, taken out of their memory.
local function recall(stream)
  local last = redis.call('HGET', K('emptied', 'last'), stream)
  local cut = last and string.find(last, '\\n', 1, true)
  if not cut then return 0 end
  redis.call('HDEL', K('emptied', 'last'), stream)
  yield('emptied', string.sub(last, cut + 1), stream, 0)
  return tonumber(string.sub(last, 1, cut - 1)) or 0
end

-- Loose references for the caller to delete, each handed to one caller at a time.
local function take_loose(count)
  if count == 0 then return {} end
  local due = redis.call('ZRANGE', K('spilled', 'loose'), '-inf', now, 'BYSCORE', 'LIMIT', 0, count)
  for i = 1, #due do loosen(due[i], now + ${LOOSE_MS}) end
  return due
end
`

/**
 * Answers the retained row. Where there is none the reference is known as one that no message holds yet, and nobody else
 * deletes its payload for `spared` ms.
 */
export const PREPARE_PAYLOAD = defineScript(
  'history.prepare',
  { args: ['stream', 'message_id', 'user', 'ref', 'spared'], answer: parseText },
  `${PLACES}
local value = redis.pcall('GET', K(m, 'row', stream .. '\\n' .. place_of(load(t, stream), message_id, user)))
if type(value) == 'string' then return value end
redis.call('ZADD', K('spilled', 'loose'), now + spared, ref)
return false`,
)

/** References whose payloads have been deleted. */
export const FORGET_PAYLOADS = defineScript(
  'history.forget-payloads',
  { args: [], rest: 'refs', answer: ignoreReply },
  `
redis.call('ZREM', K('spilled', 'loose'), unpack(refs))
return 1`,
)

// `ref` is the reference of its payload in the spill store, or nothing; `handed_out` are loose references at most.
const RETAIN_ARGS = [
  ...([
    'stream',
    'message_id',
    'user',
    'fields',
    'content',
    'attempt',
    'size',
    'ref',
    'ref_bytes',
    'handed_out',
  ] as const),
  ...(['max_per_stream', 'max_messages', 'max_per_user', 'max_bytes', 'max_bytes_per_user'] as const),
  ...(['max_spilled_bytes', 'max_spilled_bytes_per_user'] as const),
] as const
export type RetainArguments = Arguments<(typeof RETAIN_ARGS)[number]>

const RETAIN = `
local state, body = load(t, stream)
local place = place_of(state, message_id, user)
local id = stream .. '\\n' .. place
local known = redis.pcall('GET', K(m, 'row', id))
if type(known) ~= 'string' then known = nil end
local earlier = known and load(m, id)
-- What arrives twice is one attempt, and has been done.
local is_again = earlier and earlier.attempt == attempt

local function retain()
  if known then
    if ref ~= '' and not is_again then loosen(ref, now) end
    return { is_again and 1 or 0, known, take_loose(tonumber(handed_out)) }
  end
  -- Given up so long ago that its payload may be gone.
  if ref ~= '' and redis.call('ZREM', K('spilled', 'loose'), ref) == 0 then return { ${GIVEN_UP} } end
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
    local oldest = stream .. '\\n' .. redis.call('ZRANGE', K(m, 'of', stream), 0, 0)[1]
    local leaving = load(m, oldest)
    evict(oldest, leaving and leaving.user_id or state.user_id)
  end
  local bounds = { entries = max_messages, entries_per_user = max_per_user, bytes = max_bytes, bytes_per_user = max_bytes_per_user }
  make_room('history', message.user_id, id, bounds, evict)
  make_room('spilled', message.user_id, id, { bytes = max_spilled_bytes, bytes_per_user = max_spilled_bytes_per_user }, evict)
  make_room('emptied', '', '', { entries = max_messages }, recall)
  return { 1, redis.call('GET', K(m, 'row', id)), take_loose(tonumber(handed_out)) }
end
`

/** Whether the message is new, its row, and references of payloads to delete; or that its own was given up. */
const readRetained = (reply: StoreReply) => {
  const [what, row = null, unreferenced = null] = listOf(reply)
  return { isGivenUp: what === GIVEN_UP, isNew: what === 1, row: parseText(row), unreferenced: strings(unreferenced) }
}

export const APPEND_MESSAGE = defineScript(
  'history.append',
  { args: RETAIN_ARGS, answer: readRetained },
  `${FAIR_SHARE}${HISTORY}${RETAIN}
return retain()`,
)

/** Appends, and claims the message in the same step. `ttl` and `capacity` are those of the deduplicator. */
export const INGEST_MESSAGE = defineScript(
  'history.ingest',
  { args: [...RETAIN_ARGS, 'ttl', 'capacity'], answer: readRetained },
  `${FAIR_SHARE}${CLAIMS}${HISTORY}${RETAIN}
local answer = retain()
if answer[1] ~= ${GIVEN_UP} and not is_again then
  claim(user, id, tonumber(ttl), tonumber(capacity))
end
return answer`,
)
