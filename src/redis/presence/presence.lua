--@part alive
-- Rows of table `t` that expire unless they are reported again: after two intervals, or after one if closed. The body
-- of a row has fields that no script reads, especially numbers: cjson writes at most 14 digits.

--@include ../store/tables.lua
--@include ../store/once.lua

local function alive()
  local state, body = load(t, id)
  if not state or not state.updated_at or not state.ttl_ms then return nil end
  local silences = state.status == 'closed' and 1 or 2
  if state.updated_at + silences * state.ttl_ms <= now then return nil end
  return state, body
end

-- Moves the row to the index of `task`, or out of the index where `task` is no string.
local function index_task(state, task)
  for i = #state.ix, 1, -1 do
    local name, value = state.ix[i][1], state.ix[i][2]
    if name == 'task_id' then
      redis.call('ZREM', K(t, name, value), id)
      table.remove(state.ix, i)
    end
  end
  if type(task) ~= 'string' then return end
  state.ix[#state.ix + 1] = { 'task_id', task }
  redis.call('ZADD', K(t, 'task_id', task), state.seq, id)
end
local function is_new(attempt) return redis.call('EXISTS', K('once', attempt)) == 0 end
local function shown(state, body) return { cjson.encode(state), now, body } end

--@script report
--@include alive
--@include ../store/shares.lua

-- Merges two bodies, with numbers kept as text. Omitted fields keep their earlier values.
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
  -- Closing cleared this field; the entry is open again.
  if was.status == 'closed' then was.focused = nil end
  for field, value in pairs(was) do
    if state[field] == nil then state[field] = value end
  end
  body = merged(content, was_body)
  state.ownership = was.ownership
  state.task_id, state.task_assigned_at, state.created_at = was.task_id, was.task_assigned_at, was.created_at
else
  drop(t, id)
  if not has_room(K(t, 'live', state.user_id), max_per_user, K(t, 'leaves'), max_entries) then
    return refuse('capacity_exceeded')
  end
  state.created_at = now
end
state.ttl_ms = tonumber(ttl)
state.updated_at = now
state.ix = { { 'user_id', state.user_id } }
if indexed ~= '' and type(state[indexed]) == 'string' then state.ix[2] = { indexed, state[indexed] } end
if type(state.task_id) == 'string' then state.ix[#state.ix + 1] = { 'task_id', state.task_id } end
put(t, id, was, state, body, now + 2 * state.ttl_ms)
return shown(state, body)

--@script close
--@include alive

sweep(t)
local state, body = alive()
if (not state or state.status == 'closed') and is_new(attempt) then return 0 end
return once(attempt, function()
  for field, value in pairs(cjson.decode(change)) do state[field] = value end
  state.status = 'closed'
  state.updated_at = now
  index_task(state, nil)
  put(t, id, state, state, body, now + state.ttl_ms)
  return { now + state.ttl_ms, tostring(state.sent) }
end)

--@script assign
--@include alive

local state, body = alive()
if not state and is_new(attempt) then return false end
return once(attempt, function()
  if not state or state.status == 'closed' or state.ownership ~= 'worker' then return false end
  if state.task_id ~= task then
    if state.task_id ~= cjson.null then return false end
    state.task_id, state.task_assigned_at = task, now
    index_task(state, task)
    save(t, id, state, body)
  end
  return shown(state, body)
end)

--@script release
--@include alive

local state, body = alive()
if not state and is_new(attempt) then return false end
return once(attempt, function()
  if not state or state.status == 'closed' or state.task_id == cjson.null then return false end
  state.task_id, state.task_assigned_at = cjson.null, cjson.null
  index_task(state, nil)
  save(t, id, state, body)
  return shown(state, body)
end)

--@script shorten
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then
  claim.until_ms = tonumber(until_ms)
  redis.call('SET', key, cjson.encode(claim), 'KEEPTTL')
end
return 1

--@script claim
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
local held = good and claim.until_ms > now
if held and (claim.user_id ~= user or claim.client_id ~= client) then return refuse('identity_conflict') end
local made = { user_id = user, client_id = client, until_ms = now + 2 * ttl, attempt = attempt }
-- Twice the validity, so that an injected clock that lags does not lose the claim.
redis.call('SET', key, cjson.encode(made), 'PX', 4 * ttl)
return 1

--@script unclaim
local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then redis.call('DEL', key) end
return 1

--@script sweep
--@include ../store/tables.lua

local more = 0
for _, t in ipairs(tables) do
  sweep(t)
  if redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 then more = 1 end
end
return more
