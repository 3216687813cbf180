-- Reads a range of `t:all`, or of `t:<field>:<value>`. The script that includes this defines `record(id)`, which
-- returns a record and its bytes; nil for none, FOREIGN where `read` has met another type.
local most, left = tonumber(max_entries), tonumber(max_bytes)
--@include ./range.lua
local found = range(K(t, unpack(index)), from, to, most + 1)
local entries, records, cut = {}, {}, 0
for i = 1, #found, 2 do
  if #records == most or left <= 0 then cut = 1 break end
  local one, bytes = record(found[i])
  entries[i], entries[i + 1], records[#records + 1] = found[i], found[i + 1], one or false
  left = left - (bytes or 0)
end
return { foreign, cut, entries, records }
