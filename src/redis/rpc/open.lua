--@include ./calls.lua

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
put(t, id, nil, state, '{}', state.deadline_at)
tally('opened')
return now
