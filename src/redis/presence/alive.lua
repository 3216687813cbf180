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
