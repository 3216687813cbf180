/** The scripts of the correlator: calls that wait, and the one reply to each, whichever node it reaches. */
import { nothing, textOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'

/** How long a reply waits for the node that opened the call, in ms: long enough to outlive a lost link and a poll. */
const REPLY_MS = 60_000
/** How long an opening and a reply are known by their names: longer than any sender goes on trying. */
const NAMED_MS = 30_000

// Writes arrive twice when a client sends them again: an opening is known by its attempt, `calls:over:<attempt>` once it
// has ended, and a reply by its name, `calls:by:<id>`.

/** `timeout` is the time it may take. */
export const OPEN_CALL = defineScript(
  'rpc.open',
  { args: ['id', 'fields', 'timeout', 'max_pending', 'max_per_user'], answer: nothing },
  `
local t = 'calls'
sweep(t)
local state = cjson.decode(fields)
local was = load(t, id)
if was and was.attempt ~= state.attempt then return refuse('command_conflict') end
if was or redis.call('EXISTS', K(t, 'over', state.attempt)) == 1 then return now end
if redis.call('ZCARD', K(t, 'all')) >= tonumber(max_pending) then return refuse('capacity_exceeded') end
if redis.call('ZCARD', K(t, 'user_id', state.user_id)) >= tonumber(max_per_user) then return refuse('capacity_exceeded') end
-- A reply to a former call of this id does not answer this one.
redis.call('DEL', K(t, 'reply', id), K(t, 'by', id))
state.started_at, state.deadline_at = now, now + timeout
state.ix = { { 'user_id', state.user_id } }
put(t, id, nil, state, '{}', state.deadline_at)
return now`,
)

/** `has_sender` is 1 where the reply says who it is from, whose `instance` may be ''; `name` is that of this reply. */
export const SETTLE_CALL = defineScript(
  'rpc.settle',
  {
    args: ['id', 'reply', 'has_sender', 'user', 'client', 'instance', 'name'],
    answer: (reply) => (reply === 'settled' || reply === 'foreign' ? reply : 'late'),
  },
  `
local t = 'calls'
local call = load(t, id)
if redis.call('GET', K(t, 'by', id)) == name then return 'settled' end
if not call or call.deadline_at <= now then return 'late' end
if has_sender == '1' then
  if call.user_id ~= user or call.client_id ~= client then return 'foreign' end
  if call.instance_id ~= cjson.null and instance ~= '' and call.instance_id ~= instance then return 'foreign' end
end
drop(t, id)
if call.attempt then redis.call('SET', K(t, 'over', call.attempt), 1, 'PX', ${NAMED_MS}) end
redis.call('SET', K(t, 'by', id), name, 'PX', ${NAMED_MS})
redis.call('SET', K(t, 'reply', id), reply, 'PX', ${REPLY_MS})
redis.call('SPUBLISH', K(t, 'wake-ups', call.node), id)
return 'settled'`,
)

/**
 * Takes the call away; answers its reply where it has come already. The reply stays until its
 * time is over or it is known to have been received: an answer that is lost can be asked for again.
 */
export const WITHDRAW_CALL = defineScript(
  'rpc.withdraw',
  { args: ['id', 'attempt'], answer: textOf },
  `
local t = 'calls'
local call = load(t, id)
if call and call.attempt == attempt then drop(t, id) end
redis.call('SET', K(t, 'over', attempt), 1, 'PX', ${NAMED_MS})
return redis.call('GET', K(t, 'reply', id))`,
)
