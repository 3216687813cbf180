/** The scripts of the correlator: calls that wait, and the one reply to each, whichever node it reaches. */
import { ignoreReply, parseFlag, parseText } from '../store/reply.js'
import { defineScript } from '../store/script.js'

/** How long a reply waits for the node that opened the call, in ms: long enough to outlive a lost link and a poll. */
const REPLY_MS = 60_000
/** How long an opening and a reply are known by their names: longer than any sender goes on trying. */
const NAMED_MS = 30_000

/** Calls whose time has passed that one write takes away at most: more than it adds. */
const SWEEP = 16

// Writes arrive twice when a client sends them again: an opening is known by its attempt, `calls:over:<attempt>` once it
// has ended, and a reply by its name, `calls:by:<id>`, or `calls:dropped:<name>` where it was dropped. An id may be opened
// again before a reply to it is asked for: `calls:reply-to:<id>` is the attempt that the reply is to.

// `counts`: what became of calls since `since`. A call is counted where it enters and where it leaves, and so however
// often what put it there or took it away arrives: what has been opened has ended or is there.
const CALLS = `
local t = 'calls'
local function tally(what)
  -- What somebody else has written there is no reason to refuse a call.
  redis.pcall('HSETNX', K(t, 'counts'), 'since', string.format('%.0f', now))
  redis.pcall('HINCRBY', K(t, 'counts'), what, 1)
end

local function end_call(id, how)
  drop(t, id)
  tally(how)
end

local function sweep_calls()
  local due = redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})
  for i = 1, #due do end_call(due[i], 'timed_out') end
end

local function drop_reply(name, why)
  if redis.call('SET', K(t, 'dropped', name), 1, 'NX', 'PX', ${NAMED_MS}) then tally(why) end
  return why
end
`

/**
 * Calls of one millisecond that have places of their own: a place is then a time, by which the calls of all shards are in one
 * order. More only put a shard ahead of the others. A script writes no more than 14 digits of a number.
 */
const PLACES_PER_MS = 10

/** `timeout` is the time it may take. */
export const OPEN_CALL = defineScript(
  'rpc.open',
  { args: ['id', 'fields', 'timeout', 'max_pending', 'max_per_user'], answer: ignoreReply },
  `${CALLS}
sweep_calls()
local state = cjson.decode(fields)
local was = load(t, id)
if was and was.attempt ~= state.attempt then return refuse('command_conflict') end
if was or redis.call('EXISTS', K(t, 'over', state.attempt)) == 1 then return now end
if redis.call('ZCARD', K(t, 'all')) >= tonumber(max_pending) then return refuse('capacity_exceeded') end
if redis.call('ZCARD', K(t, 'user_id', state.user_id)) >= tonumber(max_per_user) then return refuse('capacity_exceeded') end
-- A reply to an earlier call of this id does not answer this one.
redis.call('DEL', K(t, 'reply', id), K(t, 'reply-to', id), K(t, 'by', id))
state.started_at, state.deadline_at = now, now + timeout
state.ix = { { 'user_id', state.user_id } }
local first = ${PLACES_PER_MS} * math.floor(now)
if (tonumber(redis.call('GET', K(t, 'seq')) or 0) or 0) < first then
  redis.call('SET', K(t, 'seq'), string.format('%.0f', first))
end
put(t, id, nil, state, '{}', state.deadline_at)
tally('opened')
return now`,
)

/**
 * `has_sender` is 1 where the reply says who it is from, whose `instance` may be ''; `name` is that of this reply, `how` how
 * it ends the call. `counts_late` is 1 where no other shard is asked, of which one might know the call.
 */
export const SETTLE_CALL = defineScript(
  'rpc.settle',
  {
    args: ['id', 'reply', 'how', 'has_sender', 'user', 'client', 'instance', 'name', 'counts_late'],
    answer: (reply) => (reply === 'settled' || reply === 'foreign' ? reply : 'late'),
  },
  `${CALLS}
local function is_foreign(call)
  if call.user_id ~= user or call.client_id ~= client then return true end
  return call.instance_id ~= cjson.null and instance ~= '' and call.instance_id ~= instance
end
local call = load(t, id)
if redis.call('GET', K(t, 'by', id)) == name then return 'settled' end
if not call or call.deadline_at <= now then return counts_late == '1' and drop_reply(name, 'late') or 'late' end
if has_sender == '1' and is_foreign(call) then return drop_reply(name, 'foreign') end
end_call(id, how)
if call.attempt then
  redis.call('SET', K(t, 'over', call.attempt), 1, 'PX', ${NAMED_MS})
  redis.call('SET', K(t, 'reply-to', id), call.attempt, 'PX', ${REPLY_MS})
end
redis.call('SET', K(t, 'by', id), name, 'PX', ${NAMED_MS})
redis.call('SET', K(t, 'reply', id), reply, 'PX', ${REPLY_MS})
redis.call('SPUBLISH', K(t, 'wake-ups', call.node), id)
return 'settled'`,
)

/** Counts a reply of that name to a call that no shard knows. */
export const COUNT_LATE = defineScript(
  'rpc.late',
  { args: ['name'], answer: ignoreReply },
  `${CALLS}
drop_reply(name, 'late')`,
)

/**
 * Takes the call away, which ends as `how` says, or leaves it where that is ''; answers its reply where it has come already.
 * The reply stays until its time is over or it is known to have been received: an answer that is lost can be asked for
 * again.
 */
export const WITHDRAW_CALL = defineScript(
  'rpc.withdraw',
  { args: ['id', 'attempt', 'how'], answer: parseText },
  `${CALLS}
local call = load(t, id)
if how ~= '' then
  if call and call.attempt == attempt then end_call(id, how) end
  redis.call('SET', K(t, 'over', attempt), 1, 'PX', ${NAMED_MS})
end
if redis.call('GET', K(t, 'reply-to', id)) ~= attempt then return nil end
return redis.call('GET', K(t, 'reply', id))`,
)

/** What the loop of a node takes away of what nobody else has: calls whose node has died. Answers whether there is more. */
export const SWEEP_CALLS = defineScript(
  'rpc.sweep',
  { args: [], answer: parseFlag, freesMemory: true },
  `${CALLS}
sweep_calls()
return redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 and 1 or 0`,
)
