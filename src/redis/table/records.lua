-- Rules are in TypeScript: this script only writes what a rule has decided, if nothing has changed since.
--@script change
--@include ../store/tables.lua
--@include ../store/shares.lua
--@include ../store/once.lua

local function change()
  local value = redis.pcall('GET', K(t, 'row', id))
  if type(value) ~= 'string' then value = '' end
  local cut = string.find(value, '\n', 1, true) or 0
  local body = string.sub(value, cut + 1)
  -- The client has sent it twice.
  if body == content then return 1 end
  if body ~= expected then return body end
  if content == '' then
    drop(t, id)
    return 1
  end
  local was = isNew == '' and load(t, id, value) or nil
  if not was then
    drop(t, id)
    if not has_room(K(t, 'live', index[2]), max_per_user, K(t, 'leaves'), max_entries) then
      return refuse('capacity_exceeded')
    end
  end
  local ix = {}
  for i = 1, #index, 2 do ix[#ix + 1] = { index[i], index[i + 1] } end
  put(t, id, was, { user_id = index[2], ix = ix }, content, tonumber(leaves))
  if index[#index - 1] == {{LOST_OF}} then
    local lost = K(t, {{LOST_OF}}, index[2])
    if redis.call('ZCARD', lost) > {{LOST_MAX}} then drop(t, redis.call('ZRANGE', lost, 0, 0)[1]) end
  end
  sweep(t)
  return 1
end
-- A row that can be deleted may be absent before and after: then only the token shows that the call has come before.
if token ~= '' then return once(token, change) end
return change()
