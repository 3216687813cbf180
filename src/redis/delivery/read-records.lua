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
-- Returns the record with that number, without its payload; nil if there is no valid record.
local function record_at(seq)
  local ref = ref_at(seq)
  local stored = ref and read('GETRANGE', P .. 'command:' .. ref, 0, {{RECORD_BYTES}})
  if not stored or stored == '' then return nil end
  local c = { ref, stored, pcall(struct.unpack, {{RECORD}}, stored) }
  -- pcall puts a success flag before the fields: remove it.
  if not table.remove(c, 3) then
    note(P .. 'command:' .. ref)
    return nil
  end
  return tonumber(c.seq) == seq and c or nil
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
