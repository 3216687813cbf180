/** The scripts of tables whose rows live by being reported: contexts and browser windows. */
import { IDEMPOTENCE } from '../store/idempotence.js'
import { count, ignoreReply, type StoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import { SHARES } from '../store/shares.js'

/** A row: what scripts know, the time, and what its client alone says; both as JSON. */
export interface Shown {
  state: string
  now: number
  body: string
}

// `t` is the table. A row leaves after two silences, a closed one after one. Its body holds what only its client says
// and no script reads, numbers above all: cjson writes no more than 14 digits of one.
const ALIVE = `${IDEMPOTENCE}
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

/** A row as it stands after the write, or nothing. */
const readShown = (reply: StoreReply): Shown | null => {
  if (!Array.isArray(reply)) return null
  const [state, now, body] = reply
  return { state: String(state), now: Number(now), body: String(body) }
}

/**
 * `fields` are those that scripts know, `content` the body; `indexed` is a field with an index of its own or ''. `sent` in a row is who reported last and their count of
 * reports: one that arrives behind a later one of theirs, or again, changes nothing.
 */
export const REPORT_ENTRY = defineScript(
  'presence.report',
  {
    args: ['t', 'id', 'fields', 'content', 'ttl', 'max_per_user', 'max_entries', 'indexed'],
    answer: readShown,
  },
  `${ALIVE}${SHARES}
-- The numbers of a body stay text. What is omitted keeps what was reported before.
local function merged(body, before)
  local parts, given = {}, {}
  for _, text in ipairs({ body, before }) do
    for name, value in string.gmatch(text, '"([%a_]+)":(%w+)') do
      if not given[name] then parts[#parts + 1] = '"' .. name .. '":' .. value end
      given[name] = true
    end
  end
  return '{' .. table.concat(parts, ',') .. '}'
end
sweep(t)
local was, was_body = alive()
local state = cjson.decode(fields)
local body = content
if was then
  if was.user_id ~= state.user_id or was.client_id ~= state.client_id then return refuse('identity_conflict') end
  local by, at = string.match(tostring(was.sent), '^(%S+) (%d+)$')
  local own_by, own_at = string.match(state.sent, '^(%S+) (%d+)$')
  if by == own_by and tonumber(own_at) <= tonumber(at) then return shown(was, was_body) end
  -- What closing said of it does not hold for one that is open again.
  if was.status == 'closed' then was.focused = nil end
  for field, value in pairs(was) do
    if state[field] == nil then state[field] = value end
  end
  body = merged(content, was_body)
  state.ownership = was.ownership
  state.task_id, state.task_assigned_at, state.created_at = was.task_id, was.task_assigned_at, was.created_at
else
  drop(t, id)
  if not has_room(K(t, 'live', state.user_id), max_per_user, K(t, 'leaves'), max_entries) then return refuse('capacity_exceeded') end
  state.created_at = now
end
state.ttl_ms = tonumber(ttl)
state.updated_at = now
state.ix = { { 'user_id', state.user_id } }
if indexed ~= '' and type(state[indexed]) == 'string' then state.ix[2] = { indexed, state[indexed] } end
put(t, id, was, state, body, now + 2 * state.ttl_ms)
return shown(state, body)`,
)

/** When an entry that was closed leaves, and what its last report was sent as. */
export interface Closed {
  leaves: number
  sent: string
}

/** `change` are the fields that closing changes. Answers nothing where there was nothing to close. */
export const CLOSE_ENTRY = defineScript(
  'presence.close',
  {
    args: ['t', 'id', 'change', 'attempt'],
    answer: (reply): Closed | null => {
      if (!Array.isArray(reply)) return null
      const [leaves = null, sent] = reply
      return { leaves: count(leaves), sent: String(sent) }
    },
  },
  `${ALIVE}
sweep(t)
local state, body = alive()
if (not state or state.status == 'closed') and is_new(attempt) then return 0 end
return once(attempt, function()
for field, value in pairs(cjson.decode(change)) do state[field] = value end
state.status = 'closed'
state.updated_at = now
put(t, id, state, state, body, now + state.ttl_ms)
return { now + state.ttl_ms, tostring(state.sent) }
end)`,
)

export const ASSIGN_TASK = defineScript(
  'presence.assign',
  { args: ['t', 'id', 'task', 'attempt'], answer: readShown },
  `${ALIVE}
local state, body = alive()
if not state and is_new(attempt) then return false end
return once(attempt, function()
if not state or state.status == 'closed' or state.ownership ~= 'worker' then return false end
if state.task_id ~= task then
  if state.task_id ~= cjson.null then return false end
  state.task_id, state.task_assigned_at = task, now
  save(t, id, state, body)
end
return shown(state, body)
end)`,
)

export const RELEASE_TASK = defineScript(
  'presence.release',
  { args: ['t', 'id', 'attempt'], answer: readShown },
  `${ALIVE}
local state, body = alive()
if not state and is_new(attempt) then return false end
return once(attempt, function()
if not state or state.status == 'closed' or state.task_id == cjson.null then return false end
state.task_id, state.task_assigned_at = cjson.null, cjson.null
save(t, id, state, body)
return shown(state, body)
end)`,
)

/** The claim on an id where a deployment has several shards, in the shard of the id. `attempt` is what its report is sent as. */
export const CLAIM_ID = defineScript(
  'presence.claim',
  { args: ['t', 'id', 'user', 'client', 'ttl', 'attempt'], answer: ignoreReply },
  `
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
local held = good and claim.until_ms > now
if held and (claim.user_id ~= user or claim.client_id ~= client) then return refuse('identity_conflict') end
local made = { user_id = user, client_id = client, until_ms = now + 2 * ttl, attempt = attempt }
-- Twice as long as it is meant, so that an injected clock that lags does not lose it.
redis.call('SET', key, cjson.encode(made), 'PX', 4 * ttl)
return 1`,
)

/** Gives back a claim of a report that was refused, unless another report has made it its own. */
export const UNCLAIM_ID = defineScript(
  'presence.unclaim',
  { args: ['t', 'id', 'attempt'], answer: ignoreReply },
  `
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then redis.call('DEL', key) end
return 1`,
)

/** Lets a claim end with its entry, which was closed, unless another report has made it its own. */
export const SHORTEN_CLAIM = defineScript(
  'presence.shorten',
  { args: ['t', 'id', 'attempt', 'until_ms'], answer: ignoreReply },
  `
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then
  claim.until_ms = tonumber(until_ms)
  redis.call('SET', key, cjson.encode(claim), 'KEEPTTL')
end
return 1`,
)
