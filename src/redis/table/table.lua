--@script users
local most, bound = tonumber(max_users), tonumber(max_examined)
local users, examined, isEnd, last = {}, 0, 0, ''
-- No byte of UTF-8 is 255.
local to = prefix == '' and '+' or '(' .. prefix .. '\255'
while isEnd == 0 and #users < most and examined < bound do
  local step = math.min(bound - examined, math.max(most - #users, 100))
  local batch = read('ZRANGE', K(t, 'users'), from, to, 'BYLEX', 'LIMIT', 0, step) or {}
  if #batch < step then isEnd = 1 end
  for i, user in ipairs(batch) do
    if #users == most then isEnd = 0 break end
    examined, last = examined + 1, user
    if (read('ZCOUNT', K(t, 'live', user), '(' .. at, '+inf') or 0) > 0 then users[#users + 1] = user end
  end
  from = '(' .. last
end
return { foreign, users, examined, last, isEnd }

--@script gather
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

--@script span
local most, bytes = tonumber(max_entries), tonumber(max_bytes)
-- Members and scores of a sorted set between two scores, at most `count`; the greatest score first where `rev` is 1.
local function range(key, from, to, count)
  if rev == '1' then return read('ZRANGE', key, from, to, 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES') or {} end
  return read('ZRANGE', key, from, to, 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES') or {}
end
local found = range(K(t, unpack(index)), from, to, most + 1)
local entries, rows, cut = {}, {}, 0
for i = 1, #found, 2 do
  if #rows == most or bytes <= 0 then cut = 1 break end
  local value = row(t, found[i])
  entries[i], entries[i + 1], rows[#rows + 1] = found[i], found[i + 1], value
  if type(value) == 'string' then bytes = bytes - #value end
end
return { foreign, cut, entries, rows }

--@script read_minutes
local minutes = {}
for minute = tonumber(first), tonumber(last) do
  local entries = read('ZRANGE', K({{TABLE}}, 'churn', string.format('%.0f', minute)), 0, {{ENTRIES}} - 1, 'WITHSCORES')
  if entries and #entries > 0 then minutes[#minutes + 1] = { minute, entries } end
end
return { foreign, minutes }
