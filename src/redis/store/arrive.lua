-- Rows of one millisecond that have a sequence of their own. cjson writes no more than 14 digits of a number.
local PLACES_PER_MS = 10

-- Returns the sequence of the next row. It is a time, so that the rows of all shards are in one order. More than
-- PLACES_PER_MS rows in a millisecond only put a shard ahead of the others.
local function arrive(t)
  local seq, first = redis.call('INCR', K(t, 'seq')), PLACES_PER_MS * math.floor(now)
  if seq >= first then return seq end
  redis.call('SET', K(t, 'seq'), string.format('%.0f', first))
  return first
end
