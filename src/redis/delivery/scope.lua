-- Inputs: scopes, and how much to examine. Outputs: for each scope its reservations. Publishes nothing.
-- Reads the reservations of scopes: how many of each there are, their earliest deadline, and its capacity. If a scope has too
-- many to examine, the deadline is ''. Ends after the scope with which the limit
-- of records is reached; the caller reads the rest.
local floor = math.floor
local P = KEYS[1] .. 'delivery:'
local columns, logs = {}, {}

-- Returns the earliest deadline of the `open` reservations of a scope, and the number of records examined.
local function examine(scope, open)
  local records, entries = tonumber(max_records), tonumber(max_entries)
  local earliest
  local function hold(deadline) earliest = math.min(earliest or deadline, deadline) end
  local elsewhere = read('HGETALL', P .. 'reserved:' .. scope) or {}
  for i = 2, #elsewhere, 2 do
    local deadline = tonumber(string.match(elsewhere[i], '^%d+'))
    open = open - 1
    if deadline then hold(deadline) end
  end
  -- The newest first, because most open commands are among them.
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
          else
            hold(deadline)
          end
        end
        if open == 0 then break end
      end
    end
    entries, to = entries - #seqs, to - 256
    if records <= 0 or entries <= 0 or #seqs < 256 then break end
  end
  local is_whole = open <= 0 or (records > 0 and entries > 0)
  return is_whole and earliest, max_records - records
end

local reserved = read('HMGET', P .. 'scopes', unpack(scopes))
local capacities = read('HMGET', P .. 'capacities', unpack(scopes)) or {}
local found, left = {}, tonumber(max_records)
for i, scope in ipairs(scopes) do
  if left <= 0 then break end
  local stored = not reserved and 'foreign' or reserved[i] or '0'
  if string.find(stored, '^%d+$') and tonumber(stored) <= 2 ^ 53 then
    local held = tonumber(stored)
    local earliest, records = examine(scope, held)
    found[i] = { held, earliest and string.format('%d', earliest) or '', capacities[i] or '' }
    left = left - records
  else
    if reserved then note(P .. 'scopes') end
    found[i] = { false, '', '' }
  end
end
return { foreign, found }
