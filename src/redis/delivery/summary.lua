--@include ./read-records.lua
-- Counts the commands of a shard. The stored counters are exact for recorded states. Commands past their deadline whose end is
-- not recorded yet are counted separately, and so are records past their retention that no pass has deleted yet.
local now, most, records = tonumber(at), tonumber(max_sample), tonumber(max_records)
local OPEN = { w = 1, a = 2, h = 3, p = 4, q = 5, k = 6 }
local ENDED = { r = 1, f = 2, x = 3, c = 4, j = 5 }

local counted = read('HMGET', P .. 'counts', 'w', 'a', 'h', 'p', 'q', 'k') or {}
local open, overdue = {}, {}
for i = 1, 6 do open[i], overdue[i] = math.min(tonumber(counted[i]) or 0, 2 ^ 53), 0 end

-- The number of commands in the boxes of clients that are attached to a node with a live lease; -1 if there are too many boxes.
local attached, is_stuck = 0, {}
if (read('SCARD', P .. 'stuck') or 0) > tonumber(max_mailboxes) then
  attached = -1
else
  for _, m in ipairs(read('SMEMBERS', P .. 'stuck') or {}) do
    if is_attached(m) then
      is_stuck[m] = true
      attached = attached + (read('LLEN', P .. 'box:' .. m) or 0)
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
    if ref and is_stuck[match(ref, '^[^:]*:[^:]*')] then attached = attached - 1 end
  end
end
for _, b in ipairs(read('ZRANGE', P .. 'due', '-inf', at, 'BYSCORE', 'LIMIT', 0, {{BUCKETS}}) or {}) do
  each(b, function(seq) take_off(seq, true) end)
end
local current = string.format('%d', floor(now / {{BUCKET}}))
if now < (current + 1) * {{BUCKET}} - 1 then each(current, function(seq) take_off(seq, false) end) end
local is_known = entries_left > 0

-- The earliest deadline is in the first bucket that has an open command.
local deadline
entries_left = {{ENTRIES}}
for _, b in ipairs(read('ZRANGE', P .. 'due', '(' .. at, '+inf', 'BYSCORE', 'LIMIT', 0, {{BUCKETS}}) or {}) do
  each(b, function(seq)
    if not OPEN[state_at(seq)] then return end
    local c = record_at(seq)
    local until_ms = c and tonumber(c.deadline_at)
    if c and not is_instant(until_ms) then note(P .. 'command:' .. c.ref)
    elseif c and until_ms > now then deadline = math.min(deadline or until_ms, until_ms) end
  end)
  if deadline or entries_left <= 0 then break end
end

-- Ended commands by state and by reason, without records past their retention.
local ended, reasons, looked = {}, read('HGETALL', P .. 'reasons') or {}, 0
for i, n in ipairs(read('HMGET', P .. 'counts', 'r', 'f', 'x', 'c', 'j') or {}) do ended[i] = math.min(tonumber(n) or 0, 2 ^ 53) end
for _, k in ipairs(read('ZRANGE', P .. 'chunks', '-inf', at, 'BYSCORE', 'LIMIT', 0, {{BUCKETS}}) or {}) do
  local number = tonumber(k)
  local column = number and number <= 2 ^ 45 and column_of(number) or ''
  for i = 1, #column do
    local place = ENDED[sub(column, i, i)]
    if place and looked < records then
      looked = looked + 1
      local c = record_at(number * {{CHUNK}} + i)
      if c and (tonumber(c.until_ms) or 0) <= now then
        ended[place] = ended[place] - 1
        reasons[#reasons + 1], reasons[#reasons + 2] = c.reason ~= '' and c.reason or {{NO_REASON}}, '-1'
      end
    end
  end
end
if looked == records then ended = {} end

-- A sample of the oldest commands that are not acknowledged, and the admission of the oldest that has not ended.
local function admitted_at(c) return match(c.history, '^[^\n]*\n[^\n]*\n([^\n]*)') or '' end
local last_chunk = math.min(floor((newest - 1) / {{CHUNK}}), first_chunk + {{CHUNKS}})
local sample, oldest, tried = {}, '', 0
for k = first_chunk, last_chunk do
  if #sample == most or tried >= records then break end
  local i = find(column_of(k), '[wahpqk]')
  while i and #sample < most and tried < records do
    tried = tried + 1
    local c = record_at(k * {{CHUNK}} + i)
    if c and (tonumber(c.deadline_at) or 0) > now then
      if oldest == '' then oldest = admitted_at(c) end
      if c.state ~= 'k' then sample[#sample + 1] = { c.ref, admitted_at(c) } end
    end
    i = find(column_of(k), '[wahpqk]', i + 1)
  end
end

-- The instants of admission, first confirmed delivery, acknowledgement and end, for the newest commands that have ended.
local times, before = {}, 0
for k = floor((newest - 1) / {{CHUNK}}), math.max(first_chunk, floor((newest - 1) / {{CHUNK}}) - {{CHUNKS}}), -1 do
  if #times >= {{SAMPLE}} or before >= records then break end
  local column = column_of(k)
  for i = #column, 1, -1 do
    if #times >= {{SAMPLE}} or before >= records then break end
    if find(sub(column, i, i), '[rfxc]') then
      before = before + 1
      local c = record_at(k * {{CHUNK}} + i)
      if c and (tonumber(c.until_ms) or 0) > now then
        local handed = match(c.history, '\nZ[^\n]*\t(%d+)\n') or match(c.history, '\nH(%d+)') or ''
        times[#times + 1] = admitted_at(c) .. ' ' .. handed .. ' ' .. (match(c.history, '\n[KN](%d+)') or '') .. ' ' .. c.ended_at
      end
    end
  end
end
return { foreign, open, is_known and overdue or {}, attached, deadline and string.format('%d', deadline) or '', sample, ended, reasons, oldest, times }
