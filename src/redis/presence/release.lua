--@include ./alive.lua

local state, body = alive()
if not state and is_new(attempt) then return false end
return once(attempt, function()
  if not state or state.status == 'closed' or state.task_id == cjson.null then return false end
  state.task_id, state.task_assigned_at = cjson.null, cjson.null
  index_task(state, nil)
  save(t, id, state, body)
  return shown(state, body)
end)
