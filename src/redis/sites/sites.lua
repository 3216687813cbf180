-- `site:<id>`: two lines. Scripts read the first, its owner and times; only JavaScript writes the second, the
-- declaration. `owners`: a hash, site to owner; `held`: a hash, owner to the number of sites. For lists: `all` and
-- `owner:<owner>`, ids by the order of declaration.

--@include ../store/once.lua

local key, owners, held = K('sites', 'site', site), K('sites', 'owners'), K('sites', 'held')
local function stored()
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' then return nil end
  local good, head = pcall(cjson.decode, string.match(value, '^[^\n]*'))
  if not good or type(head) ~= 'table' or type(head.owner) ~= 'string' then return nil end
  local since = head.created_at
  return type(since) == 'number' and since >= 0 and since <= now and head or nil
end
local function disown()
  local owner = redis.call('HGET', owners, site)
  if not owner then return end
  redis.call('HDEL', owners, site)
  raise('sites')
  redis.call('ZREM', K('sites', 'all'), site)
  redis.call('ZREM', K('sites', 'owner', owner), site)
  if redis.call('HINCRBY', held, owner, -1) <= 0 then redis.call('HDEL', held, owner) end
end
local function enlist()
  local seq = redis.call('INCR', K('sites', 'seq'))
  redis.call('ZADD', K('sites', 'all'), seq, site)
  redis.call('ZADD', K('sites', 'owner', owner), seq, site)
end
