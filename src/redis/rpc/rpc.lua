--@part calls
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
  pcall(write, 'HSETNX', K(t, 'counts'), 'since', string.format('%.0f', now))
  pcall(write, 'HINCRBY', K(t, 'counts'), what, 1)
end

-- Keeps a call that ended, in table `ended-calls`: a row, its place in `all` and in `user_id:<user>`. The oldest are
-- deleted beyond the maximum of a user and of all.
local function keep_ended(id, call, how, ended_at, reason)
  local e = 'ended-calls'
  -- The retention may be over already, if no process ran in between.
  if ended_at <= now - {{ENDED_CALL_KEPT_MS}} then return end
  local all, own = K(e, 'all'), K(e, 'user_id', call.user_id)
  -- As `arrive` makes it, from the newest: that is one command less.
  local seq = math.max(PLACES_PER_MS * math.floor(now), (tonumber(redis.call('ZRANGE', all, -1, -1, 'WITHSCORES')[2]) or 0) + 1)
  -- An earlier call of this id may be in another user's index.
  if write('ZADD', all, seq, id) == 0 then
    local before = load(e, id)
    if before then unindex(e, id, before.ix) end
  end
  write('ZADD', own, seq, id)
  save(e, id, {
    correlation_id = id, action = call.action, user_id = call.user_id, client_id = call.client_id,
    instance_id = call.instance_id, started_at = call.started_at, outcome = how,
    trace = call.trace, trace_id = call.trace_id, direction = call.direction, observed = call.observed,
    connection_reason = reason, ended_at = ended_at, seq = seq, ix = { { 'user_id', call.user_id } },
  }, '{}', true)
  if redis.call('ZCARD', own) > {{ENDED_CALLS_PER_USER_MAX}} then
    local oldest = redis.call('ZPOPMIN', own)[1]
    redis.call('ZREM', all, oldest)
    redis.call('DEL', K(e, 'row', oldest))
  elseif redis.call('ZCARD', all) > {{ENDED_CALLS_MAX}} then
    drop(e, redis.call('ZRANGE', all, 0, 0)[1])
  end
end

-- `call` is the row's state if the caller has loaded it. A row leaves at its deadline; that of an observed call at the end
-- of its lease, by which its id is in `calls:observed` too.
local function end_call(id, how, call, ended_at, reason)
  call = call or load(t, id)
  drop(t, id)
  redis.call('ZREM', K(t, 'observed'), id)
  if call and how == 'timed_out' then
    if call.observed then how = 'unanswered' end
    local leaves = call.observed and call.lease_at or call.deadline_at
    if type(leaves) == 'number' and leaves < now then ended_at = leaves end
  end
  tally(how)
  if call and call.attempt then redis.call('SET', K(t, 'over', call.attempt), 1, 'PX', NAMED_MS) end
  if call and call.started_at then keep_ended(id, call, how, ended_at or now, reason or cjson.null) end
end

local function sweep_calls()
  local due = redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_CALLS)
  for i = 1, #due do end_call(due[i], 'timed_out') end
end

local function drop_reply(name, why)
  if redis.call('SET', K(t, 'dropped', name), 1, 'NX', 'PX', NAMED_MS) then tally(why) end
  return why
end

--@script open
--@include calls

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

--@script settle
--@include calls

-- How long a reply is kept for the node that opened the call, in ms: longer than a lost connection and a poll take.
local REPLY_MS = 60000

local function is_foreign(call)
  if call.user_id ~= user or call.client_id ~= client then return true end
  return call.instance_id ~= cjson.null and instance ~= '' and call.instance_id ~= instance
end
local call = load(t, id)
if redis.call('GET', K(t, 'by', id)) == name then return 'settled' end
if not call or call.observed or call.deadline_at <= now then return counts_late == '1' and drop_reply(name, 'late') or 'late' end
if has_sender == '1' and is_foreign(call) then return drop_reply(name, 'foreign') end
end_call(id, how, call)
if call.attempt then redis.call('SET', K(t, 'reply-to', id), call.attempt, 'PX', REPLY_MS) end
redis.call('SET', K(t, 'by', id), name, 'PX', NAMED_MS)
redis.call('SET', K(t, 'reply', id), reply, 'PX', REPLY_MS)
redis.call('SPUBLISH', K(t, 'signals', call.node), id)
return 'settled'

--@script withdraw
--@include calls

local call = load(t, id)
if how ~= '' then
  if call and call.attempt == attempt then end_call(id, how, call)
  else redis.call('SET', K(t, 'over', attempt), 1, 'PX', NAMED_MS) end
end
if redis.call('GET', K(t, 'reply-to', id)) ~= attempt then return nil end
return redis.call('GET', K(t, 'reply', id))

--@script late
--@include calls

drop_reply(name, 'late')

--@script sweep
--@include calls

sweep_calls()
-- Ended calls are placed by their time, ten places per millisecond.
local e, expired = 'ended-calls', 10 * (now - {{ENDED_CALL_KEPT_MS}})
for _, id in ipairs(redis.call('ZRANGE', K(e, 'all'), '-inf', expired, 'BYSCORE', 'LIMIT', 0, SWEEP_CALLS)) do drop(e, id) end
local due = redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) + redis.call('ZCOUNT', K(e, 'all'), '-inf', expired)
return due > 0 and 1 or 0

--@script observe
--@include calls

-- How long the number of the last report of a follower is remembered, in ms.
local OBSERVER_MS = 3600000

-- Adds the counts of an action in one direction to those of the shard.
local function add_action(more)
  local totals, name = K(t, 'observed-actions'), more.direction .. ' ' .. more.action
  local held = redis.pcall('HGET', totals, name)
  if not held and redis.call('HLEN', totals) >= {{ACTIONS_MAX}} then
    more.action = {{OTHER_ACTION}}
    name = more.direction .. ' ' .. more.action
    held = redis.call('HGET', totals, name)
  end
  local good, total = pcall(cjson.decode, held)
  if good and type(total) == 'table' and type(total.counts) == 'table' then
    for i, count in ipairs(more.counts) do more.counts[i] = count + (tonumber(total.counts[i]) or 0) end
    for field, value in pairs(more) do
      if type(value) == 'number' then more[field] = value + (tonumber(total[field]) or 0) end
    end
  end
  pcall(write, 'HSET', totals, name, cjson.encode(more))
end

local last = K(t, 'observer', observer)
if (tonumber(redis.call('GET', last)) or 0) >= tonumber(sequence) then return 0 end
redis.call('SET', last, sequence, 'PX', OBSERVER_MS)
sweep_calls()
if actions ~= '[]' then pcall(write, 'HSETNX', K(t, 'counts'), 'since', string.format('%.0f', now)) end
for _, more in ipairs(cjson.decode(actions)) do add_action(more) end
for name, value in pairs({ evicted = evicted, unrecorded = unrecorded }) do
  if tonumber(value) > 0 then pcall(write, 'HINCRBY', K(t, 'counts'), name, value) end
end
local refused, lease_at = 0, now + tonumber(lease)
for _, text in ipairs(calls) do
  local given = cjson.decode(text)
  local id, ended = given.correlation_id, given['end']
  local call = load(t, id)
  if ended and call and call.observed then
    end_call(id, ended.outcome, call, now - ended.ago_ms, ended.connection_reason)
  elseif ended and not call then
    given.started_at, given.observed = now - given.age_ms, true
    tally('opened')
    tally(ended.outcome)
    keep_ended(id, given, ended.outcome, now - ended.ago_ms, ended.connection_reason)
  elseif call and call.observed then
    call.answered_since, call.lease_at = given.answered_since, lease_at
    put(t, id, call, call, '{}', lease_at)
    write('ZADD', K(t, 'observed'), lease_at, id)
  elseif not call then
    local user = given.user_id
    if redis.call('ZCARD', K(t, 'all')) >= tonumber(max_pending)
      or redis.call('ZCARD', K(t, 'user_id', user)) >= tonumber(max_per_user) then
      refused = refused + 1
    else
      given.started_at, given.age_ms, given.deadline_at, given.observed, given.lease_at =
        now - given.age_ms, nil, cjson.null, true, lease_at
      given.ix = { { 'user_id', user } }
      put(t, id, nil, given, '{}', lease_at)
      write('ZADD', K(t, 'observed'), lease_at, id)
      tally('opened')
    end
  end
end
return refused

--@script summary
-- Calls that are read to find the oldest. It is the first one, unless that row is invalid.
local OLDEST_MAX = 4

local t = 'calls'
local counts = read('HMGET', K(t, 'counts'), 'evicted', 'unrecorded', 'since', {{COUNTERS}}) or {}
local pending = read('ZCARD', K(t, 'leaves')) or 0
local overdue = read('ZCOUNT', K(t, 'leaves'), '-inf', at) or 0
local ids, rows = read('ZRANGE', K(t, 'all'), 0, OLDEST_MAX - 1) or {}, {}
for i, id in ipairs(ids) do rows[i] = row(t, id) end
local lapsed = read('ZCOUNT', K(t, 'observed'), '-inf', at) or 0
local actions = read('HGETALL', K(t, 'observed-actions')) or {}
return { foreign, counts, pending - lapsed, overdue - lapsed, ids, rows, actions }
