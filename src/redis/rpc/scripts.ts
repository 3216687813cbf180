/** The scripts of the correlator: calls that wait, and the one reply to each, whichever node it reaches. */
import { defineScript } from '../store/script.js'

/** How long a reply waits for the node that opened the call, in ms: long enough to outlive a lost link and a poll. */
const REPLY_MS = 60_000
/** How long an opening and a reply are known by their names: longer than any sender goes on trying. */
const NAMED_MS = 30_000

// Writes arrive twice when a client sends them again: an opening is known by its attempt, `calls:over:<attempt>` once it
// has ended, and a reply by its name, `calls:by:<id>`.

/**
 * ARGV: 2 id, 3 the fields, 4 the time it may take, 5 most pending calls, 6 most of this user. Answers the time.
 */
export const OPEN = defineScript(`
local t, id = 'calls', ARGV[2]
sweep(t)
local state = cjson.decode(ARGV[3])
local was = load(t, id)
if was and was.attempt ~= state.attempt then return refuse('command_conflict') end
if was or redis.call('EXISTS', K(t, 'over', state.attempt)) == 1 then return now end
if redis.call('ZCARD', K(t, 'all')) >= tonumber(ARGV[5]) then return refuse('capacity_exceeded') end
if redis.call('ZCARD', K(t, 'user_id', state.user_id)) >= tonumber(ARGV[6]) then return refuse('capacity_exceeded') end
-- A reply to a former call of this id is none to this one.
redis.call('DEL', K(t, 'reply', id), K(t, 'by', id))
state.started_at, state.deadline_at = now, now + tonumber(ARGV[4])
state.ix = { { 'user_id', state.user_id } }
put(t, id, nil, state, '{}', state.deadline_at)
return now`)

/**
 * ARGV: 2 id, 3 the reply, 4 '1' when it says who it is from: 5 user, 6 client, 7 instance or '', 8 the name of this
 * reply. Answers 'settled', 'late' or 'foreign'.
 */
export const SETTLE = defineScript(`
local t, id = 'calls', ARGV[2]
local call = load(t, id)
if redis.call('GET', K(t, 'by', id)) == ARGV[8] then return 'settled' end
if not call or call.deadline_at <= now then return 'late' end
if ARGV[4] == '1' then
  if call.user_id ~= ARGV[5] or call.client_id ~= ARGV[6] then return 'foreign' end
  if call.instance_id ~= cjson.null and ARGV[7] ~= '' and call.instance_id ~= ARGV[7] then return 'foreign' end
end
drop(t, id)
if call.attempt then redis.call('SET', K(t, 'over', call.attempt), 1, 'PX', ${NAMED_MS}) end
redis.call('SET', K(t, 'by', id), ARGV[8], 'PX', ${NAMED_MS})
redis.call('SET', K(t, 'reply', id), ARGV[3], 'PX', ${REPLY_MS})
redis.call('SPUBLISH', K(t, 'bell', call.node), id)
return 'settled'`)

/**
 * ARGV: 2 id, 3 the attempt. Takes the call away; answers its reply where it has come already. The reply stays until its
 * time is over or it is known to have been received: an answer that is lost can be asked for again.
 */
export const WITHDRAW = defineScript(`
local t, id = 'calls', ARGV[2]
local call = load(t, id)
if call and call.attempt == ARGV[3] then drop(t, id) end
redis.call('SET', K(t, 'over', ARGV[3]), 1, 'PX', ${NAMED_MS})
return redis.call('GET', K(t, 'reply', id))`)
