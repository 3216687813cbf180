-- Number of rows per millisecond that get distinct sequence numbers. cjson writes at most 14 digits of a number.
local PLACES_PER_MS = 10

-- Returns the sequence number of the next row. It is derived from the time, so that rows of all shards have one order.
-- More than PLACES_PER_MS rows in a millisecond only move this shard ahead of the others.
local function arrive(t)
  local seq, first = redis.call('INCR', K(t, 'seq')), PLACES_PER_MS * math.floor(now)
  if seq >= first then return seq end
  write('SET', K(t, 'seq'), string.format('%.0f', first))
  return first
end
