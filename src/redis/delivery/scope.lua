-- Reads the reservations of a scope: how many have not expired, their earliest deadline, and the capacity. If the scope has too
-- many to examine, the count includes expired ones and the deadline is ''.
local floor = math.floor
local P = KEYS[1] .. 'delivery:'
local now, records, entries = tonumber(at), tonumber(max_records), tonumber(max_entries)
local all = math.min(tonumber(read('HGET', P .. 'scopes', scope) or 0) or 0, 2 ^ 53)
local live, earliest, open = 0, nil, all
local function hold(deadline)
  live = live + 1
  earliest = math.min(earliest or deadline, deadline)
end
local elsewhere = read('HGETALL', P .. 'reserved:' .. scope) or {}
for i = 2, #elsewhere, 2 do
  local deadline = tonumber(string.match(elsewhere[i], '^%d+'))
  open = open - 1
  if deadline and deadline > now then hold(deadline) end
end
-- The newest first, because most open commands are among them.
local columns, logs, is_whole = {}, {}, true
local to = -1
while open > 0 do
  local seqs = read('LRANGE', P .. 'of:' .. scope, to - 255, to) or {}
  for i = #seqs, 1, -1 do
    local seq = tonumber(seqs[i]) or 0
    local k = floor((seq - 1) / {{CHUNK}})
    columns[k] = columns[k] or read('GET', P .. 'states:' .. k) or ''
    if string.find(string.sub(columns[k], seq - k * {{CHUNK}}, seq - k * {{CHUNK}}), '[wahpqk]') then
      records = records - 1
      logs[k] = logs[k] or read('LRANGE', P .. 'log:' .. k, 0, -1) or {}
      local ref = logs[k][seq - k * {{CHUNK}}] or ''
      local stored = read('GETRANGE', P .. 'command:' .. ref, 0, {{RECORD_BYTES}})
      local c = { ref, stored, pcall(struct.unpack, {{RECORD}}, stored) }
      if table.remove(c, 3) and c.scope == scope and c.scope_shard == '' then
        open = open - 1
        local deadline = tonumber(c.deadline_at)
        if not deadline or deadline < 0 or deadline > 8640000000000000 then
          note(P .. 'command:' .. ref)
          live = live + 1
        elseif deadline > now then
          hold(deadline)
        end
      end
      if open == 0 then break end
    end
  end
  entries, to = entries - #seqs, to - 256
  if records <= 0 or entries <= 0 or #seqs < 256 then break end
end
is_whole = open <= 0 or (records > 0 and entries > 0)
if not is_whole then live = all end
return { foreign, live, is_whole and earliest and string.format('%d', earliest) or '', read('HGET', P .. 'capacities', scope) or '' }
