-- Writes may arrive twice, because a client sends them again. An opening is known by its attempt,
-- `calls:over:<attempt>` once it has ended; a reply by its name, `calls:by:<id>`, or `calls:dropped:<name>` where it
-- was dropped. An id may be opened again before the reply to it is read: `calls:reply-to:<id>` is the attempt that the
-- reply belongs to.
--
-- `calls:counts` counts calls by outcome since `since`. A call is counted when its row is inserted and when it is
-- deleted, so repeated writes do not count twice: every opened call has either ended or is pending.

--@include ../store/tables.lua

-- How long the names of openings and replies are remembered, in ms: longer than any sender retries.
local NAMED_MS = 30000
-- Calls past their deadline that one write removes at most: more than it adds.
local SWEEP_CALLS = 16

local t = 'calls'
local function tally(what)
  -- If another type is stored there, calls work all the same.
  redis.pcall('HSETNX', K(t, 'counts'), 'since', string.format('%.0f', now))
  redis.pcall('HINCRBY', K(t, 'counts'), what, 1)
end

-- Keeps a call that ended, in table `ended-calls`: a row, its place in `all` and in `user_id:<user>`. The oldest are
-- deleted beyond the maximum of a user and of all.
local function keep_ended(id, call, how)
  local e = 'ended-calls'
  local deadline = call.deadline_at
  local ended_at = how == 'timed_out' and deadline < now and deadline or now
  -- The retention may be over already, if no process ran in between.
  if ended_at <= now - {{ENDED_CALL_KEPT_MS}} then return end
  local state = {
    correlation_id = id, action = call.action, user_id = call.user_id, client_id = call.client_id,
    instance_id = call.instance_id, started_at = call.started_at, outcome = how,
    trace = call.trace, trace_id = call.trace_id,
    ended_at = ended_at,
    seq = arrive(e), ix = { { 'user_id', call.user_id } },
  }
  -- An earlier call of this id may be in another user's index.
  if redis.call('EXISTS', K(e, 'row', id)) == 1 then drop(e, id) end
  save(e, id, state, '{}')
  local all, own = K(e, 'all'), K(e, 'user_id', call.user_id)
  redis.call('ZADD', all, state.seq, id)
  redis.call('ZADD', own, state.seq, id)
  local oldest
  if redis.call('ZCARD', own) > {{ENDED_CALLS_PER_USER_MAX}} then oldest = redis.call('ZRANGE', own, 0, 0)[1]
  elseif redis.call('ZCARD', all) > {{ENDED_CALLS_MAX}} then oldest = redis.call('ZRANGE', all, 0, 0)[1] end
  if oldest then drop(e, oldest) end
end

-- `call` is the row's state if the caller has loaded it.
local function end_call(id, how, call)
  call = call or load(t, id)
  drop(t, id)
  tally(how)
  if call and call.started_at and call.deadline_at then keep_ended(id, call, how) end
end

local function sweep_calls()
  local due = redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_CALLS)
  for i = 1, #due do end_call(due[i], 'timed_out') end
end

local function drop_reply(name, why)
  if redis.call('SET', K(t, 'dropped', name), 1, 'NX', 'PX', NAMED_MS) then tally(why) end
  return why
end
