local left, bytes = tonumber(max_entries), tonumber(max_bytes)
local sizes, sorted = {}, {}
for i, value in ipairs(values) do
  sizes[i] = read('ZCARD', K(t, index, value)) or 0
  if sizes[i] > 0 then sorted[#sorted + 1] = sizes[i] end
end
table.sort(sorted)
local cap, rest = sorted[#sorted], left
for i, size in ipairs(sorted) do
  local fair = math.floor(rest / (#sorted - i + 1))
  if size > fair then cap = math.max(1, fair) break end
  rest = rest - size
end
local groups = {}
for i, of in ipairs(values) do
  local group = { sizes[i] }
  local most = math.min(cap or 0, left)
  if sizes[i] > 0 and most > 0 and bytes > 0 then
    for _, id in ipairs(read('ZRANGE', K(t, index, of), 0, most - 1) or {}) do
      local value = row(t, id)
      group[#group + 1], group[#group + 2], left = id, value, left - 1
      if type(value) == 'string' then bytes = bytes - #value end
      if bytes <= 0 then break end
    end
  end
  groups[i] = group
end
return { foreign, groups }
