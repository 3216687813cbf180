/** The scripts of the site registry: a site belongs to whoever put it first, until it is deleted. */
import { defineScript } from '../script.js'

// `sites:site:<id>`: two lines, its owner and times, which scripts read, and the declaration, which only JavaScript
// writes. `sites:all`: the ids of a shard.
const SITES = `
local key, all = K('sites', 'site', ARGV[2]), K('sites', 'all')
local function held()
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' then return nil end
  local good, head = pcall(cjson.decode, string.match(value, '^[^\\n]*'))
  if not good or type(head) ~= 'table' or type(head.owner) ~= 'string' then return nil end
  local since = head.created_at
  return type(since) == 'number' and since >= 0 and since <= now and head or nil
end
`

/** ARGV: 2 site, 3 owner, 4 declaration, 5 most sites. Answers both lines, and whether it is new. */
export const PUT_SITE = defineScript(`${SITES}
local old = held()
if old and old.owner ~= ARGV[3] then return refuse('owner_mismatch') end
if not old and redis.call('SCARD', all) >= tonumber(ARGV[5]) then return refuse('capacity_exceeded') end
local head = cjson.encode({ owner = ARGV[3], created_at = old and old.created_at or now, updated_at = now })
local value = head .. '\\n' .. ARGV[4]
redis.call('SET', key, value)
redis.call('SADD', all, ARGV[2])
return { value, old and 0 or 1 }`)

/** ARGV: 2 site, 3 owner or ''. Answers whether it was deleted. */
export const DELETE_SITE = defineScript(`${SITES}
local old = held()
if not old or (ARGV[3] ~= '' and old.owner ~= ARGV[3]) then return 0 end
redis.call('DEL', key)
redis.call('SREM', all, ARGV[2])
return 1`)
