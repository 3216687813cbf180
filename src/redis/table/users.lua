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
