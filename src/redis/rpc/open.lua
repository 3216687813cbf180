--@include ./calls.lua

-- Sequence numbers per millisecond. A sequence number is derived from the time, which orders the calls of all shards.
-- More calls than this put a shard ahead of the others. A script writes no more than 14 digits of a number.
local PLACES_PER_MS = 10

sweep_calls()
local state = cjson.decode(fields)
local was = load(t, id)
if was and was.attempt ~= state.attempt then return refuse('command_conflict') end
if was or redis.call('EXISTS', K(t, 'over', state.attempt)) == 1 then return now end
if redis.call('ZCARD', K(t, 'all')) >= tonumber(max_pending) then return refuse('capacity_exceeded') end
if redis.call('ZCARD', K(t, 'user_id', state.user_id)) >= tonumber(max_per_user) then return refuse('capacity_exceeded') end
-- Deletes the reply to an earlier call of this id.
redis.call('DEL', K(t, 'reply', id), K(t, 'reply-to', id), K(t, 'by', id))
state.started_at, state.deadline_at = now, now + timeout
state.ix = { { 'user_id', state.user_id } }
local first = PLACES_PER_MS * math.floor(now)
if (tonumber(redis.call('GET', K(t, 'seq')) or 0) or 0) < first then
  redis.call('SET', K(t, 'seq'), string.format('%.0f', first))
end
put(t, id, nil, state, '{}', state.deadline_at)
tally('opened')
return now
