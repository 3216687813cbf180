/** The scripts of the correlator: calls that wait, and the one reply to each, whichever node it reaches. */
import { defineScript } from '../script.js'

/** How long a reply waits for the node that opened the call, in ms: long enough to outlive a lost link and a poll. */
const REPLY_MS = 60_000

/** ARGV: 2 id, 3 the fields, 4 the time it may take, 5 most pending calls. Answers the time. */
export const OPEN = defineScript(`
local t, id = 'calls', ARGV[2]
sweep(t)
if load(t, id) then return refuse('command_conflict') end
if redis.call('ZCARD', K(t, 'all')) >= tonumber(ARGV[5]) then return refuse('capacity_exceeded') end
local state = cjson.decode(ARGV[3])
state.started_at, state.deadline_at = now, now + tonumber(ARGV[4])
state.ix = { { 'user_id', state.user_id } }
put(t, id, nil, state, '{}', state.deadline_at)
return now`)

/**
 * ARGV: 2 id, 3 the reply, 4 '1' when it says who it is from: 5 user, 6 client, 7 instance or ''. Answers 'settled',
 * 'late' or 'foreign'.
 */
export const SETTLE = defineScript(`
local t, id = 'calls', ARGV[2]
local call = load(t, id)
if not call or call.deadline_at <= now then return 'late' end
if ARGV[4] == '1' then
  if call.user_id ~= ARGV[5] or call.client_id ~= ARGV[6] then return 'foreign' end
  if call.instance_id ~= cjson.null and ARGV[7] ~= '' and call.instance_id ~= ARGV[7] then return 'foreign' end
end
drop(t, id)
redis.call('SET', K(t, 'reply', id), ARGV[3], 'PX', ${REPLY_MS})
redis.call('SPUBLISH', K(t, 'bell', call.node), id)
return 'settled'`)

/** ARGV: 2 id. Takes the call away; answers its reply where it has come already. */
export const WITHDRAW = defineScript(`
local t, id = 'calls', ARGV[2]
drop(t, id)
return redis.call('GETDEL', K(t, 'reply', id))`)
