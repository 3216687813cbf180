--@include ./topic.lua

-- How long the name of a publication is remembered (longer than any sender retries), and how many names per topic.
local SENT_MS, SENT_MAX = 30000, 10000
-- How long the newest event of a topic is remembered after the last event of its user, and for how many topics per
-- user. If there are more, all of that user in the shard are forgotten.
local LAST_KEPT_MS, LAST_MAX = 2592000000, 10000
-- Maximum number of events per topic whose ids are remembered, for as long as the topic.
local HAD_MAX = 1000

local sent = K('bus', 'sent', topic)
redis.call('ZREMRANGEBYSCORE', sent, '-inf', now - SENT_MS)
-- The sender repeated a publication whose reply was lost.
if redis.call('ZSCORE', sent, name) then
  local _, epoch, seq = standing(topic, known_epoch, known_seq, fresh)
  return { 0, epoch, seq }
end
local had = K('bus', 'had', topic)
if event_id ~= '' then
  redis.call('ZREMRANGEBYSCORE', had, '-inf', now - KEPT_MS)
  if redis.call('ZSCORE', had, event_id) then return {{REPEATED}} end
end
redis.call('ZADD', sent, now, name)
redis.call('ZREMRANGEBYRANK', sent, 0, -SENT_MAX - 1)
redis.call('PEXPIRE', sent, SENT_MS)
local key, epoch, _, spoilt = standing(topic, known_epoch, known_seq, fresh)
local seq = redis.call('HINCRBY', key, 'seq', 1)
redis.call('SPUBLISH', K('bus', 'on', topic), epoch .. '\n' .. seq .. '\n' .. event)
-- Remembers the newest event for the list of sites. If the key has another type, the event is published all the same.
local user = string.match(topic, '^users/([^/]+)/')
local last = K('bus', 'last', user or '')
local noted = user and redis.pcall('HLEN', last)
if type(noted) == 'number' then
  raise('bus')
  if noted >= LAST_MAX and redis.call('HEXISTS', last, topic) == 0 then redis.call('DEL', last) end
  redis.call('HSET', last, topic, published_at .. ' ' .. epoch .. ':' .. string.format('%.0f', seq))
  redis.call('PEXPIRE', last, LAST_KEPT_MS)
end
if event_id ~= '' then
  redis.call('ZADD', had, now, event_id)
  redis.call('ZREMRANGEBYRANK', had, 0, -HAD_MAX - 1)
  redis.call('PEXPIRE', had, KEPT_MS)
end
return { spoilt, epoch, seq }
