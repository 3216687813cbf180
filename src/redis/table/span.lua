local most, bytes = tonumber(max_entries), tonumber(max_bytes)
--@include ./range.lua
local found = range(K(t, unpack(index)), from, to, most + 1)
local entries, rows, cut = {}, {}, 0
for i = 1, #found, 2 do
  if #rows == most or bytes <= 0 then cut = 1 break end
  local value = row(t, found[i])
  entries[i], entries[i + 1], rows[#rows + 1] = found[i], found[i + 1], value
  if type(value) == 'string' then bytes = bytes - #value end
end
return { foreign, cut, entries, rows }
