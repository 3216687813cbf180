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
