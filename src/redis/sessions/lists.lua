--@script list
local function record(id)
  local values = read('HMGET', K(t, 'session', id), {{SESSION_FIELDS}})
  if not values then return {{FOREIGN}}, 0 end
  if not values[1] then return nil end
  local ends, bytes = K(t, 'share-ends', id), 0
  for i = 1, {{FIELDS}} do bytes = bytes + #(values[i] or '') end
  local first = read('ZRANGE', ends, '(' .. at, '(+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES') or {}
  return { values, read('ZCOUNT', ends, '(' .. at, '+inf') or 0, first[2] or false }, bytes
end
--@include ../table/listing.lua

--@script open_at
local counts = {}
for i = 1, #sites, 2 do
  counts[#counts + 1] = read('ZCOUNT', K('sessions', 'at', sites[i], sites[i + 1]), '(' .. at, '+inf') or 0
end
return { foreign, counts }
