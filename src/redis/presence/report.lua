--@include ./alive.lua
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
