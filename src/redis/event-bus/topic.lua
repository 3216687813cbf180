-- `bus:topic:<topic>`: a hash, epoch and seq; `bus:on:<topic>`: its channel; `bus:sent:<topic>`: names of publications
-- by time, so that one that arrives twice is one; `bus:of:<user>`: the user's topics by when they were last touched;
-- `bus:last:<user>`: a hash, topic to the newest event's time and position, for whoever looks. A node that has
-- seen more than the store holds tells of a store that has lost something: the count starts again under a new name. So it does when what is held
-- is not a position that we would have written, or the last that a number can carry; `spoilt` says so.

-- How long an unused topic is remembered: nobody publishes to it, and no node asks about it.
local KEPT_MS = 600000
-- Topics of one user in a shard. Beyond, the one untouched for longest starts a new epoch.
local TOPICS_PER_USER = 10000
-- The greatest whole number that a number can hold.
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
  -- First: behind it a full store takes the rest, too.
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
