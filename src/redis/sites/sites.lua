-- `sites:site:<id>`: two lines, its owner and times, which scripts read, and the declaration, which only JavaScript
-- writes. `sites:owners`: whose each site of the shard is; `sites:held`: how many each owner has. `sites:all` and
-- `sites:owner:<owner>`: ids by the order in which they were declared, for lists.
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
