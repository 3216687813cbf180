--@include ./read-records.lua
-- Lists the commands that match a filter, in the order of their numbers. A filter by user or scope reads the list of that user
-- or scope; others scan the state columns (one byte for each command of a chunk).
local now, most, bytes = tonumber(at), tonumber(max_records), tonumber(max_bytes)
local oldest = first_chunk * {{CHUNK}} + 1
local class = '[' .. (states ~= '' and states or overdue == 'true' and {{OPEN}} or {{ALL}}) .. ']'
local is_down = descending ~= ''
local step = is_down and -1 or 1
local passed = 0

-- Returns the number of the last command whose stamp is at most `bound`. If there is none in that chunk, returns the number
-- before the chunk.
local function up_to(bound)
  local k = tonumber((read('ZRANGE', P .. 'starts', string.format('%d', bound), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1) or {})[1])
  if not k then return 0 end
  local column, live = column_of(k), {}
  for i = 1, #column do
    if sub(column, i, i) ~= '.' then live[#live + 1] = k * {{CHUNK}} + i end
  end
  local low, high = 1, #live
  while low <= high do
    local middle = floor((low + high) / 2)
    local c = record_at(live[middle])
    if not c then
      table.remove(live, middle)
      high = high - 1
    elseif tonumber(c.stamp) <= bound then
      low = middle + 1
    else
      high = middle - 1
    end
  end
  return live[low - 1] or k * {{CHUNK}}
end

-- Returns the next number, starting at `from`, whose state matches. If the limit of columns is reached first, returns nil and
-- the last number that was examined.
local function in_columns(from)
  if is_down then from = math.min(from, newest) else from = math.max(from, oldest) end
  while from >= oldest and from <= newest do
    if columns_read >= {{CHUNKS}} then return nil, from - step end
    local k = floor((from - 1) / {{CHUNK}})
    local column, offset = column_of(k), from - k * {{CHUNK}}
    if is_down then
      for i = math.min(offset, #column), 1, -1 do
        if find(sub(column, i, i), class) then return k * {{CHUNK}} + i end
      end
      from = k * {{CHUNK}}
    else
      local i = find(column, class, offset)
      if i then return k * {{CHUNK}} + i end
      from = (k + 1) * {{CHUNK}} + 1
    end
    passed = passed + 1
  end
  return nil
end

local list, size
for _, name in ipairs({ user, scope }) do
  local n = name ~= '' and (read('LLEN', P .. 'of:' .. name) or 0)
  if n and (not size or n < size) then list, size = P .. 'of:' .. name, n end
end

local function number_at(i) return tonumber((read('LINDEX', list, i))) or 0 end
local index, entries, entries_from
local function in_list(from)
  if not index then
    -- Binary search for the first entry at or after `from`.
    local low, high = 0, size
    while low < high do
      local middle = floor((low + high) / 2)
      if number_at(middle) < from then low = middle + 1 else high = middle end
    end
    index = is_down and (number_at(low) ~= from or low == size) and low - 1 or low
  end
  while index >= 0 and index < size do
    if not entries or index < entries_from or index >= entries_from + #entries then
      entries_from = is_down and math.max(0, index - {{BATCH}} + 1) or index
      entries = read('LRANGE', list, entries_from, entries_from + {{BATCH}} - 1) or {}
      if #entries == 0 then return nil end
    end
    local seq = tonumber(entries[index - entries_from + 1])
    index = index + step
    if seq and seq >= oldest and seq <= newest then
      if find(state_at(seq), class) then return seq end
      if columns_read >= {{CHUNKS}} then return nil, seq end
    end
  end
  return nil
end

local function is_wanted(c)
  local of_user, of_client, id = match(c.ref, '^([^:]*):([^:]*):([^:]*)$')
  if not id or (user ~= '' and of_user ~= user) or (client ~= '' and of_client ~= client) or (command ~= '' and id ~= command) then return false end
  if c.until_ms ~= '' and (tonumber(c.until_ms) or 0) <= now then return false end
  if not find(c.state, class) or (scope ~= '' and c.scope ~= scope) then return false end
  local is_late = c.ended_at == '' and (tonumber(c.deadline_at) or 0) <= now
  if overdue ~= '' and tostring(is_late) ~= overdue then return false end
  if action ~= '' and match(c.history, '^[^\n]*\n([^\t\n]*)') ~= action then return false end
  return trace_id == '' or match(c.history, '^[^\n]*\n[^\t\n]*\t00%-(%x+)') == trace_id
end

-- Overdue commands are in the buckets of past deadlines and in the current bucket.
local late
if overdue == 'true' and not list then
  local entries_left = {{ENTRIES}}
  late = {}
  for _, b in ipairs(read('ZRANGE', P .. 'due', '-inf', string.format('%d', now + {{BUCKET}}), 'BYSCORE', 'LIMIT', 0, {{ENTRIES}}) or {}) do
    for _, entry in ipairs(entries_left > 0 and read('LRANGE', P .. 'due:' .. b, 0, entries_left) or {}) do
      entries_left = entries_left - 1
      local seq = tonumber(match(entry, '^%d+'))
      if seq and seq >= oldest and seq <= newest and find(state_at(seq), class) then late[#late + 1] = seq end
    end
  end
  if entries_left <= 0 then late = nil else table.sort(late) end
end
local late_at = late and (is_down and #late or 1)
local function in_late(from)
  while late[late_at] and (late[late_at] - from) * step < 0 do late_at = late_at + step end
  return late[late_at]
end

local position
if after == '' then
  position = is_down and newest + 1 or 0
elseif by_stamp == '' then
  position = tonumber(after)
else
  position = is_down and up_to(after - 1) + 1 or up_to(tonumber(after))
end
local search = list and in_list or late and in_late or in_columns
local found, examined, cut, last = {}, 0, 0, after
while true do
  if examined >= most or #found == tonumber(wanted) or bytes <= 0 then
    cut = 1
    break
  end
  local seq, reached = search(position + step)
  if not seq then
    if reached then
      cut = 1
      last = by_stamp == '' and string.format('%d', reached) or read('ZSCORE', P .. 'starts', string.format('%d', floor((reached - 1) / {{CHUNK}}))) or last
    end
    break
  end
  position, examined = seq, examined + 1
  local c = record_at(seq)
  if by_stamp == '' then last = string.format('%d', seq) elseif c then last = c.stamp end
  if c and is_wanted(c) then
    local text = sub(c.stored, 1, c.payload_at - 1)
    -- Whether the client is attached matters only for commands in states w and q.
    local is_boxed = c.state == 'w' or c.state == 'q'
    found[#found + 1] = { last, c.ref, text, is_boxed and is_attached(match(c.ref, '^[^:]*:[^:]*')) and 1 or 0 }
    bytes = bytes - #text
  end
end
-- Columns without a match cost time too: 64 of them count as one examined record.
return { foreign, cut, last, examined + floor(passed / 64), found }
