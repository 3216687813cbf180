local found = {}
for i, topic in ipairs(topics) do
  local of = K('bus', 'last', string.match(topic, '^users/([^/]+)/') or '')
  found[i] = (read('HMGET', of, topic) or {})[1] or false
end
return { foreign, found }
