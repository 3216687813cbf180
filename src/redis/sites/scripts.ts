/** The scripts of the site registry: a site belongs to whoever put it first, until it is deleted. */

import { ONCE } from '../store/once.js'
import { defineScript } from '../store/script.js'

// `sites:site:<id>`: two lines, its owner and times, which scripts read, and the declaration, which only JavaScript
// writes. `sites:owners`: whose each site of the shard is; `sites:held`: how many each owner has.
const SITES = `${ONCE}
local key, owners, held = K('sites', 'site', ARGV[3]), K('sites', 'owners'), K('sites', 'held')
local function stored()
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' then return nil end
  local good, head = pcall(cjson.decode, string.match(value, '^[^\\n]*'))
  if not good or type(head) ~= 'table' or type(head.owner) ~= 'string' then return nil end
  local since = head.created_at
  return type(since) == 'number' and since >= 0 and since <= now and head or nil
end
local function disown()
  local owner = redis.call('HGET', owners, ARGV[3])
  if not owner then return end
  redis.call('HDEL', owners, ARGV[3])
  if redis.call('HINCRBY', held, owner, -1) <= 0 then redis.call('HDEL', held, owner) end
end
`

/** ARGV: 2 attempt, 3 site, 4 owner, 5 declaration, 6 most sites of one owner, 7 most sites. Answers the first line, and
 * whether the site is new. */
export const PUT_SITE = defineScript(`${SITES}
return once(ARGV[2], function()
  local old, owner = stored(), ARGV[4]
  if old and old.owner ~= owner then return refuse('owner_mismatch') end
  if not old then
    disown()
    if tonumber(redis.call('HGET', held, owner) or 0) >= tonumber(ARGV[6])
      or redis.call('HLEN', owners) >= tonumber(ARGV[7]) then return refuse('capacity_exceeded') end
    redis.call('HSET', owners, ARGV[3], owner)
    redis.call('HINCRBY', held, owner, 1)
  end
  local head = cjson.encode({ owner = owner, created_at = old and old.created_at or now, updated_at = now })
  redis.call('SET', key, head .. '\\n' .. ARGV[5])
  return { head, old and 0 or 1 }
end)`)

/** ARGV: 2 attempt, 3 site, 4 owner or ''. Answers whether it was deleted. */
export const DELETE_SITE = defineScript(`${SITES}
return once(ARGV[2], function()
  local old = stored()
  if not old or (ARGV[4] ~= '' and old.owner ~= ARGV[4]) then return 0 end
  redis.call('DEL', key)
  disown()
  return 1
end)`)
