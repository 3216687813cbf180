--@include ./alive.lua

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
