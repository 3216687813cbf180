/** The lists of commands of a shard, for the scripts of the dispatcher: by state, by user and by scope, by admission. */
import { CommandState } from '../../contract/delivery-words.js'

const ALL = CommandState.options.map((state) => `'${state}'`).join(', ')

/**
 * `state:<state>` has the references of all commands in that state, `of-id:<id>` those of a user and of a scope of that
 * name, which are one for most commands; by the number of the admission. A list ends with its last record.
 */
export const DELIVERY_LISTS = `
local function state_of(c)
  return c.terminal or c.acknowledged and 'acknowledged' or tonumber(c.attempts) > 0 and 'attempted' or 'waiting'
end

local function under(id) return ended(D, 'of-id', encode(id)) end

local function enlist(c)
  raise(D)
  zcall('ZADD', 'state:' .. state_of(c), c.seq, c.ref)
  redis.call('ZADD', under(c.user_id), c.seq, c.ref)
  if c.scope_id ~= c.user_id then redis.call('ZADD', under(c.scope_id), c.seq, c.ref) end
end

local function relist(c, from)
  local to = state_of(c)
  if to == from then return end
  zcall('ZREM', 'state:' .. from, c.ref)
  zcall('ZADD', 'state:' .. to, c.seq, c.ref)
end

-- Before its record goes. One that says nothing of itself may be in any state.
local function unlist(user, ref, key)
  local was = redis.pcall('HMGET', key, 'terminal', 'scope_id')
  for _, state in ipairs(was[1] and { was[1] } or { ${ALL} }) do zcall('ZREM', 'state:' .. state, ref) end
  redis.call('ZREM', under(user), ref)
  raise(D)
  if was[2] and was[2] ~= user then redis.call('ZREM', under(was[2]), ref) end
end
`
