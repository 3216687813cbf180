/** The scripts of tables whose rows live by being reported: contexts and browser windows. */

import { ONCE } from '../store/once.js'
import { defineBare } from '../store/script.js'
import { SHARES } from '../store/shares.js'

// ARGV: 2 table, 3 id. A row leaves after two silences, a closed one after one. Its body holds what only its client says
// and no script reads, numbers above all: cjson writes no more than 14 digits of one.
const ALIVE = `${ONCE}
local t, id = ARGV[2], ARGV[3]
local function alive()
  local state, body = load(t, id)
  if not state or not state.updated_at or not state.ttl_ms then return nil end
  local silences = state.status == 'closed' and 1 or 2
  if state.updated_at + silences * state.ttl_ms <= now then return nil end
  return state, body
end
local function is_new(attempt) return redis.call('EXISTS', K('once', attempt)) == 0 end
local function shown(state, body) return { cjson.encode(state), now, body } end
`

/**
 * ARGV: 4 the reported fields, 5 the body, 6 ttl, 7 most entries of a user, 8 most entries, 9 a field with an index of
 * its own or ''. Answers the state, the time and the body. `sent` in a row is who reported last and their count of
 * reports: one that arrives behind a later one of theirs, or again, changes nothing.
 */
export const REPORT = defineBare(`${ALIVE}${SHARES}
sweep(t)
local was, was_body = alive()
local state, body = cjson.decode(ARGV[4]), ARGV[5]
if was then
  if was.user_id ~= state.user_id or was.client_id ~= state.client_id then return refuse('identity_conflict') end
  local by, at = string.match(tostring(was.sent), '^(%S+) (%d+)$')
  local own_by, own_at = string.match(state.sent, '^(%S+) (%d+)$')
  if by == own_by and tonumber(own_at) <= tonumber(at) then return shown(was, was_body) end
  state.ownership = was.ownership
  state.task_id, state.task_assigned_at, state.created_at = was.task_id, was.task_assigned_at, was.created_at
else
  drop(t, id)
  if not has_room(K(t, 'live', state.user_id), ARGV[7], K(t, 'leaves'), ARGV[8]) then return refuse('capacity_exceeded') end
  state.created_at = now
end
state.ttl_ms = tonumber(ARGV[6])
state.updated_at = now
state.ix = { { 'user_id', state.user_id } }
local field = ARGV[9]
if field ~= '' and type(state[field]) == 'string' then state.ix[2] = { field, state[field] } end
put(t, id, was, state, body, now + 2 * state.ttl_ms)
return shown(state, body)`)

/** ARGV: 4 the fields that closing changes, 5 attempt. Answers whether there was something to close. */
export const CLOSE = defineBare(`${ALIVE}
sweep(t)
local state, body = alive()
if (not state or state.status == 'closed') and is_new(ARGV[5]) then return 0 end
return once(ARGV[5], function()
for field, value in pairs(cjson.decode(ARGV[4])) do state[field] = value end
state.status = 'closed'
state.updated_at = now
put(t, id, state, state, body, now + state.ttl_ms)
return 1
end)`)

/** ARGV: 4 the task, 5 attempt. Answers the state, the time and the body, or nothing. */
export const ASSIGN = defineBare(`${ALIVE}
local state, body = alive()
if not state and is_new(ARGV[5]) then return false end
return once(ARGV[5], function()
if not state or state.status == 'closed' or state.ownership ~= 'worker' then return false end
if state.task_id ~= ARGV[4] then
  if state.task_id ~= cjson.null then return false end
  state.task_id, state.task_assigned_at = ARGV[4], now
  save(t, id, state, body)
end
return shown(state, body)
end)`)

/** ARGV: 4 attempt. Answers the state, the time and the body, or nothing. */
export const RELEASE = defineBare(`${ALIVE}
local state, body = alive()
if not state and is_new(ARGV[4]) then return false end
return once(ARGV[4], function()
if not state or state.status == 'closed' or state.task_id == cjson.null then return false end
state.task_id, state.task_assigned_at = cjson.null, cjson.null
save(t, id, state, body)
return shown(state, body)
end)`)

/**
 * The claim on an id where a deployment has several shards, in the shard of the id. ARGV: 4 user, 5 client, 6 ttl, 7 the
 * attempt. Answers whether the claim is a new one.
 */
export const CLAIM = defineBare(`
local key = K('claims', ARGV[2], ARGV[3])
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
local held = good and claim.until_ms > now
if held and (claim.user_id ~= ARGV[4] or claim.client_id ~= ARGV[5]) then return refuse('identity_conflict') end
local ttl = tonumber(ARGV[6])
local made = { user_id = ARGV[4], client_id = ARGV[5], until_ms = now + 2 * ttl, attempt = ARGV[7] }
-- Twice as long as it is meant, so that an injected clock that lags does not lose it.
redis.call('SET', key, cjson.encode(made), 'PX', 4 * ttl)
return held and 0 or 1`)

/** Gives back a claim of a report that was refused, unless another report has made it its own. ARGV: 4 the attempt. */
export const UNCLAIM = defineBare(`
local key = K('claims', ARGV[2], ARGV[3])
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == ARGV[4] then redis.call('DEL', key) end
return 1`)
