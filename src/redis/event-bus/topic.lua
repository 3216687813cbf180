--@part topic
-- `bus:topic:<topic>`: a hash, epoch and seq. `bus:on:<topic>`: its channel. `bus:sent:<topic>`: names of publications
-- by time, to publish a repeated one once. `bus:had:<topic>`: ids of events by time. `bus:of:<user>`: topics of a user
-- by last use. `bus:last:<user>`: a hash, topic to time and position of its newest event.
--
-- A topic starts a new epoch when the store has lost data, which is when a node has seen a later position than the
-- store holds. It also does so when the stored position is invalid or at its maximum; then `spoilt` is 1.

-- How long an unused topic is remembered: no events are published to it, and no node reads its position.
local KEPT_MS = 600000
-- Maximum number of topics of one user in a shard. Above it, the least recently used one starts a new epoch.
local TOPICS_PER_USER = 10000
-- Maximum of a sequence number: the greatest exact integer.
local SEQ_MAX = 9007199254740991

local function standing(topic, epoch, seq, fresh)
  local key = K('bus', 'topic', topic)
  local held = redis.call('HMGET', key, 'epoch', 'seq')
  local e, s = held[1], held[2] or '0'
  local spoilt = 0
  if e then
    local counts = (s == '0' or string.find(s, '^[1-9]%d*$')) and tonumber(s) < SEQ_MAX
    if string.find(e, '%c') or not counts then e, spoilt = false, 1 end
  end
  s = tonumber(s)
  if not e or (e == epoch and s < tonumber(seq)) then
    e, s = fresh, 0
    redis.call('HSET', key, 'epoch', e, 'seq', s)
  end
  -- Before the writes that need memory: once a script has written, a full store accepts the rest, too.
  redis.call('PEXPIRE', key, KEPT_MS)
  local of = K('bus', 'of', string.match(topic, '^users/([^/]+)/') or '')
  if redis.call('ZADD', of, now, topic) == 1 then
    redis.call('ZREMRANGEBYSCORE', of, '-inf', now - KEPT_MS)
    if redis.call('ZCARD', of) > TOPICS_PER_USER then
      redis.call('DEL', K('bus', 'topic', redis.call('ZPOPMIN', of)[1]))
    end
  end
  redis.call('PEXPIRE', of, KEPT_MS)
  return key, e, s, spoilt
end

--@script publish
--@include topic

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

--@script positions
--@include topic

local found = {}
for i = 1, #known, 3 do
  local _, epoch, seq, spoilt = standing(known[i], known[i + 1], known[i + 2], fresh .. '-' .. i)
  found[#found + 1] = epoch
  found[#found + 1] = seq
  found[#found + 1] = spoilt
end
return found

--@script last_events
local found = {}
for i, topic in ipairs(topics) do
  local of = K('bus', 'last', string.match(topic, '^users/([^/]+)/') or '')
  found[i] = (read('HMGET', of, topic) or {})[1] or false
end
return { foreign, found }
