local minutes = {}
for minute = tonumber(first), tonumber(last) do
  local key = K('connections', 'churn', string.format('%.0f', minute))
  local entries = read('ZRANGE', key, 0, {{ENTRIES}} - 1, 'WITHSCORES') or {}
  if #entries > 0 then minutes[#minutes + 1] = { minute, entries } end
end
return { foreign, minutes }
