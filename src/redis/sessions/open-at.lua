local counts = {}
for i = 1, #sites, 2 do
  counts[#counts + 1] = read('ZCOUNT', K('sessions', 'at', sites[i], sites[i + 1]), '(' .. at, '+inf') or 0
end
return { foreign, counts }
