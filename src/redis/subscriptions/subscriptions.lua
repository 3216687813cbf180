-- Its rule is not shared: a stream belongs to one node, and its report replaces the last one.

--@script report
--@include ../store/tables.lua

-- Values of one stream in the list `streams`.
local STREAM_PARTS = 5

local t = 'subscriptions'
sweep(t)
local until_ms = now + lease
for i = 1, #streams, STREAM_PARTS do
  local id, user, session, site, body = unpack(streams, i, i + STREAM_PARTS - 1)
  local was = load(t, id)
  if was and was.user_id == user and was.session_id == session and was.site_id == site then
    was.until_ms = until_ms
    save(t, id, was, body)
    leave(t, id, was, until_ms)
  else
    drop(t, id)
    put(t, id, nil, { subscription_id = id, user_id = user, session_id = session, site_id = site, until_ms = until_ms,
      ix = { { 'user_id', user }, { 'session_id', session }, { 'site_id', site } } }, body, until_ms)
  end
end
if is_short == '1' then
  redis.call('SET', K(t, {{BEYOND}}), string.format('%.0f', until_ms), 'PX', lease)
end
return 1

--@script end
--@include ../store/tables.lua

for _, id in ipairs(gone) do drop('subscriptions', id) end
return 1
