--@part sites
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

--@script put
--@include sites

return once(attempt, function()
  local old = stored()
  if old and old.owner ~= owner then return refuse('owner_mismatch') end
  if not old then
    disown()
    if tonumber(redis.call('HGET', held, owner) or 0) >= tonumber(max_per_owner)
      or redis.call('HLEN', owners) >= tonumber(max_sites) then return refuse('capacity_exceeded') end
    redis.call('HSET', owners, site, owner)
    redis.call('HINCRBY', held, owner, 1)
    enlist()
  end
  local head = cjson.encode({ owner = owner, created_at = old and old.created_at or now, updated_at = now })
  raise('sites')
  redis.call('SET', key, head .. '\n' .. declaration)
  return { head, old and 0 or 1 }
end)

--@script delete
--@include sites

return once(attempt, function()
  local old = stored()
  if not old or (owner ~= '' and old.owner ~= owner) then return 0 end
  redis.call('DEL', key)
  raise('sites')
  disown()
  return 1
end)

--@script list
local function record(id)
  local value = read('GETRANGE', K(t, 'site', id), 0, {{CUT_BYTES}} - 1)
  if not value then return {{FOREIGN}}, 0 end
  if value ~= '' then return value, #value end
end
--@include ../table/listing.lua
