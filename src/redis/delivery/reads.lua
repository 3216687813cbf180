-- Lists and summaries of commands. They only read.
-- Inputs: the arguments of the scripts in commands.ts and summary.ts. Outputs: records, and how much was examined. Publishes nothing.

--@part read_records
-- Shared by the read-only scripts that read commands by their numbers.
local floor, find, sub, match = math.floor, string.find, string.sub, string.match
local P = KEYS[1] .. 'delivery:'
-- Reads a number, or 0 if the value is not a number or above `most`, as when another application overwrote it.
local function whole(name, most)
  local n = tonumber(match(read('GET', P .. name) or '', '^%d+') or 0)
  return n and n <= most and n or 0
end
local newest, first_chunk = whole('seq', 2 ^ 53), whole('first-chunk', 2 ^ 45)
local function is_instant(n) return n and n >= 0 and n <= 8640000000000000 end

local logs, columns, columns_read = {}, {}, 0
local function column_of(k)
  if not columns[k] then
    columns[k] = read('GET', P .. 'states:' .. string.format('%d', k)) or ''
    columns_read = columns_read + 1
  end
  return columns[k]
end
local function state_at(seq)
  local k = floor((seq - 1) / {{CHUNK}})
  return sub(column_of(k), seq - k * {{CHUNK}}, seq - k * {{CHUNK}})
end
local function ref_at(seq)
  local k = floor((seq - 1) / {{CHUNK}})
  logs[k] = logs[k] or read('LRANGE', P .. 'log:' .. string.format('%d', k), 0, -1) or {}
  local ref = logs[k][seq - k * {{CHUNK}}]
  return ref and ref ~= '' and ref or nil
end
-- Returns the record of a reference, without its payload; nil if there is no valid record.
local function record_of(ref)
  local stored = ref and read('GETRANGE', P .. 'command:' .. ref, 0, {{RECORD_BYTES}})
  if not stored or stored == '' then return nil end
  local c = { ref, stored, pcall(struct.unpack, {{RECORD}}, stored) }
  -- pcall puts a success flag before the fields: remove it.
  if not table.remove(c, 3) then
    note(P .. 'command:' .. ref)
    return nil
  end
  return c
end
local function admitted_at(c) return match(c.history, '^[^\n]*\n[^\n]*\n([^\n]*)') or '' end
-- Returns the record with that number.
local function record_at(seq)
  local c = record_of(ref_at(seq))
  return c and tonumber(c.seq) == seq and c or nil
end

-- Returns the waiter of a mailbox if its node has a live lease, else false.
local attached_known = {}
local function is_attached(m)
  local known = attached_known[m]
  if known == nil then
    local stored = read('HGET', P .. 'waiters', m)
    local good, w = pcall(function() return { struct.unpack({{WAITER}}, stored) } end)
    local lease = good and read('HGET', P .. 'leases', w.incarnation)
    known = lease and (tonumber(lease) or 0) > tonumber(at) and w or false
    attached_known[m] = known
  end
  return known
end

--@script status
--@include read_records
-- Returns the record of a command without its payload: '' if the key is missing, nil if the value is not the record of this
-- command.
local key = P .. 'command:' .. ref
local stored = read('GETRANGE', key, 0, {{RECORD_BYTES}})
if stored == '' then return { foreign, '' } end
local good, _, seq = pcall(struct.unpack, 'ss', stored or '')
seq = good and tonumber(seq)
local is_own = seq and is_instant(seq) and ref_at(seq) == ref
return { foreign, is_own and stored or false }

--@script commands
--@include read_records
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

-- Whether the reference has the wanted ids. It is in the log, so records of other commands are not read.
local function is_named(ref)
  local of_user, of_client, id = match(ref or '', '^([^:]*):([^:]*):([^:]*)$')
  return id and (user == '' or of_user == user) and (client == '' or of_client == client) and (command == '' or id == command)
end

local function is_wanted(c)
  if c.until_ms ~= '' and (tonumber(c.until_ms) or 0) <= now then return false end
  if not find(c.state, class) or (scope ~= '' and c.scope ~= scope) then return false end
  local is_late = c.ended_at == '' and (tonumber(c.deadline_at) or 0) <= now
  if overdue ~= '' and tostring(is_late) ~= overdue then return false end
  if reason ~= '' and (c.ended_at == '' or (c.reason == '' and {{NO_REASON}} or c.reason) ~= reason) then return false end
  if from ~= '' and floor(tonumber(c.ended_at) or math.huge) < tonumber(from) then return false end
  if to ~= '' and floor(tonumber(admitted_at(c)) or 0) > tonumber(to) then return false end
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
-- The numbers of the commands since `last` whose records were not read.
local unread = {}
while true do
  if examined >= most or #found == tonumber(wanted) or bytes <= 0 then
    cut = 1
    break
  end
  local seq, reached = search(position + step)
  if not seq then
    if reached then
      cut, unread = 1, {}
      last = by_stamp == '' and string.format('%d', reached) or read('ZSCORE', P .. 'starts', string.format('%d', floor((reached - 1) / {{CHUNK}}))) or last
    end
    break
  end
  position, examined = seq, examined + 1
  local c = is_named(ref_at(seq)) and record_at(seq)
  if by_stamp == '' then last = string.format('%d', seq)
  elseif c then last, unread = c.stamp, {}
  else unread[#unread + 1] = seq end
  if c and is_wanted(c) then
    local text = sub(c.stored, 1, c.payload_at - 1)
    -- Whether the client is attached matters only for commands in states w and q.
    local is_queued = c.state == 'w' or c.state == 'q'
    found[#found + 1] = { last, c.ref, text, is_queued and is_attached(match(c.ref, '^[^:]*:[^:]*')) and 1 or 0 }
    bytes = bytes - #text
  end
end
-- The next page continues after the last of them that has a stamp.
for i = #unread, 1, -1 do
  local c = record_at(unread[i])
  if c then
    last = c.stamp
    break
  end
end
-- Columns without a match cost time too: 64 of them count as one examined record.
return { foreign, cut, last, examined + floor(passed / 64), found }

--@script summary
--@include read_records
-- Counts the commands of a shard. The stored counters are exact for recorded states. Commands past their deadline whose end is
-- not recorded yet are counted separately, and so are records past their retention that no pass has deleted yet.
local now, most, records = tonumber(at), tonumber(max_sample), tonumber(max_records)
local OPEN = { w = 1, a = 2, h = 3, p = 4, q = 5, k = 6 }
local ENDED = { r = 1, f = 2, x = 3, c = 4, j = 5 }

local counted = read('HMGET', P .. 'counts', 'w', 'a', 'h', 'p', 'q', 'k') or {}
local open, overdue = {}, {}
for i = 1, 6 do open[i], overdue[i] = math.min(tonumber(counted[i]) or 0, 2 ^ 53), 0 end

-- The number of commands in the queues of clients that are attached to a node with a live lease; -1 if there are too many queues.
local attached, is_backlogged = 0, {}
if (read('SCARD', P .. 'backlogged') or 0) > tonumber(max_mailboxes) then
  attached = -1
else
  for _, m in ipairs(read('SMEMBERS', P .. 'backlogged') or {}) do
    if is_attached(m) then
      is_backlogged[m] = true
      attached = attached + (read('LLEN', P .. 'queue:' .. m) or 0)
    end
  end
end

-- All open commands in past buckets are overdue. In the current bucket the record decides.
local entries_left = {{ENTRIES}}
local function each(b, act)
  for _, entry in ipairs(entries_left > 0 and read('LRANGE', P .. 'due:' .. b, 0, entries_left) or {}) do
    entries_left = entries_left - 1
    local seq = tonumber(match(entry, '^%d+'))
    if seq then act(seq) end
  end
end
local function take_off(seq, is_over)
  local i = OPEN[state_at(seq)]
  if not i then return end
  if not is_over then
    local c = record_at(seq)
    if not c or (tonumber(c.deadline_at) or 0) > now then return end
  end
  overdue[i] = overdue[i] + 1
  if attached > 0 and (i == 1 or i == 5) then
    local ref = ref_at(seq)
    if ref and is_backlogged[match(ref, '^[^:]*:[^:]*')] then attached = attached - 1 end
  end
end
local first_due
for _, b in ipairs(read('ZRANGE', P .. 'due', '-inf', at, 'BYSCORE', 'LIMIT', 0, {{BUCKETS}}) or {}) do
  each(b, function(seq)
    if OPEN[state_at(seq)] then first_due = first_due or b end
    take_off(seq, true)
  end)
end
local current = string.format('%d', floor(now / {{BUCKET}}))
if now < (current + 1) * {{BUCKET}} - 1 then each(current, function(seq) take_off(seq, false) end) end
local is_known, looked = entries_left > 0, 0

-- The earliest deadline is in the first bucket that has an open command. Passes keep that one at the front. If many commands
-- are due in its {{BUCKET}} ms, only some of them are read.
local deadline
entries_left = 2 * records
local from = first_due and string.format('%d', (first_due + 1) * {{BUCKET}} - 1) or '(' .. at
for _, b in ipairs(read('ZRANGE', P .. 'due', from, '+inf', 'BYSCORE', 'LIMIT', 0, {{BUCKETS}}) or {}) do
  each(b, function(seq)
    if not OPEN[state_at(seq)] or looked == most then return end
    looked = looked + 1
    local c = record_at(seq)
    local until_ms = c and tonumber(c.deadline_at)
    if c and not is_instant(until_ms) then note(P .. 'command:' .. c.ref)
    elseif c then deadline = math.min(deadline or until_ms, until_ms) end
  end)
  if deadline or entries_left <= 0 then break end
end

-- Ended commands by state and by reason, without records past their retention.
local ended, reasons = {}, read('HGETALL', P .. 'reasons') or {}
for i, n in ipairs(read('HMGET', P .. 'counts', 'r', 'f', 'x', 'c', 'j') or {}) do ended[i] = math.min(tonumber(n) or 0, 2 ^ 53) end
local over = read('ZRANGE', P .. 'expiring', '-inf', at, 'BYSCORE', 'LIMIT', 0, {{BUCKETS}}) or {}
for _, until_ms in ipairs(over) do
  local numbers = read('HGETALL', P .. 'expiring:' .. until_ms) or {}
  for i = 1, #numbers, 2 do
    local state, reason = match(numbers[i], '^(%l) (.*)$')
    local n, place = tonumber(numbers[i + 1]), ENDED[state]
    if n and place then
      ended[place] = ended[place] - n
      reasons[#reasons + 1], reasons[#reasons + 2] = reason, '-' .. numbers[i + 1]
    end
  end
end
if #over == {{BUCKETS}} then ended = {} end

-- A sample of the oldest commands that are not acknowledged, and the admission of the oldest that has not ended.
local first_open = math.max(first_chunk, whole('first-open', 2 ^ 45))
local last_chunk = math.min(floor((newest - 1) / {{CHUNK}}), first_open + {{CHUNKS}})
local sample, oldest, tried = {}, '', 0
for k = first_open, last_chunk do
  if #sample == most or tried >= records then break end
  local i = find(column_of(k), '[wahpqk]')
  while i and #sample < most and tried < records do
    tried = tried + 1
    local c = record_at(k * {{CHUNK}} + i)
    if c then
      if oldest == '' then oldest = admitted_at(c) end
      if c.state ~= 'k' then sample[#sample + 1] = { c.ref, admitted_at(c) } end
    end
    i = find(column_of(k), '[wahpqk]', i + 1)
  end
end

-- The instants of admission, first confirmed delivery, acknowledgement and end, for the commands that ended last.
local times, is_timed = {}, {}
for _, ref in ipairs(read('LRANGE', P .. 'ended', 0, 2 * {{SAMPLE}} - 1) or {}) do
  if #times == {{SAMPLE}} then break end
  local c = record_of(ref)
  local seq = c and tonumber(c.seq)
  if seq and not is_timed[seq] and find(state_at(seq), '[rfxc]') and (tonumber(c.until_ms) or 0) > now then
    is_timed[seq] = true
    local handed = match(c.history, '\nZ[^\n]*\t(%d+)\n') or match(c.history, '\nH(%d+)') or ''
    times[#times + 1] = admitted_at(c) .. ' ' .. handed .. ' ' .. (match(c.history, '.*\n[KN](%d+)') or '') .. ' ' .. c.ended_at
  end
end
return { foreign, open, is_known and overdue or {}, attached, deadline and string.format('%d', deadline) or '', sample, ended, reasons, oldest, times }

--@script mailboxes
--@include read_records
-- Lists the mailboxes with an attached client, in the order of their attaches. Skips those whose node has an expired lease,
-- because it is unknown whether their clients are still attached.
local list = user ~= '' and P .. 'attached-of:' .. user or P .. 'attached'
local found, last, examined, cut = {}, after, 0, 0

local function look(m, order)
  local of_user, of_client = match(m, '^([^:]*):([^:]*)$')
  if not of_user or user ~= '' and of_user ~= user or client ~= '' and of_client ~= client then return end
  local w = is_attached(m)
  if not w or w.order ~= order or node ~= '' and w.node ~= node then return end
  found[#found + 1] = { order, of_user, of_client, w.instance, w.node, w.since, read('LLEN', P .. 'queue:' .. m) or 0 }
end

while cut == 0 do
  local entries = read('ZRANGE', list, '(' .. last, '(+inf', 'BYSCORE', 'LIMIT', 0, {{BATCH}}, 'WITHSCORES') or {}
  for i = 1, #entries, 2 do
    if examined == tonumber(most) or #found == tonumber(wanted) then
      cut = 1
      break
    end
    examined, last = examined + 1, entries[i + 1]
    look(entries[i], entries[i + 1])
  end
  if #entries < 2 * {{BATCH}} then break end
end
return { foreign, cut, last, examined, found }
