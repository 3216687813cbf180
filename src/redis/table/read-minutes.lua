local minutes = {}
for minute = tonumber(first), tonumber(last) do
  local entries = read('ZRANGE', K({{TABLE}}, 'churn', string.format('%.0f', minute)), 0, {{ENTRIES}} - 1, 'WITHSCORES')
  if entries and #entries > 0 then minutes[#minutes + 1] = { minute, entries } end
end
return { foreign, minutes }
