/** The lists of commands of a shard, for the scripts of the dispatcher: by state, by user and by scope, by admission. */
import { CommandState } from '../../contract/delivery-words.js'

const ALL = CommandState.options.map((state) => `'${state}'`).join(', ')

/**
 * `state:<state>` has the references of all commands in that state, `of-id:<id>` those of a user and of a scope of that
 * name, which are one for most commands; by the number of the admission. A list ends with its last record.
 *
 * No script of the dispatcher reads them. So each is written once, when the calls of a script have been run.
 */
export const DELIVERY_LISTS = `
local function state_of(c)
  return c.terminal or c.acknowledged and 'acknowledged' or tonumber(c.attempts) > 0 and 'attempted' or 'waiting'
end

local function by_state(state) return ended(D, 'state', state) end
local function under(id) return ended(D, 'of-id', encode(id)) end

-- By the key of a list: what is to stand there behind its number, what is not, and the calls that say so.
local gathered = {}
local function gather(key)
  local of = gathered[key]
  if not of then
    of = { listed = {}, left = {}, calls = {} }
    gathered[key] = of
  end
  of.calls[#of.calls + 1] = number
  return of
end

-- Of what is said of one place the last is so.
local function list(key, c)
  local of = gather(key)
  local listed = of.listed
  listed[#listed + 1], listed[#listed + 2] = c.seq, c.ref
  of.left[c.ref] = nil
end

local function leave_list(key, ref) gather(key).left[ref] = true end

-- fail is told of the calls whose list is none.
local function write_lists(fail)
  for key, of in pairs(gathered) do
    local function write(command, ...)
      local reply = redis.pcall(command, key, ...)
      if type(reply) == 'table' then for _, n in ipairs(of.calls) do fail(n, reply) end end
    end
    local left = {}
    for ref in pairs(of.left) do left[#left + 1] = ref end
    if #of.listed > 0 then write('ZADD', unpack(of.listed)) end
    if #left > 0 then write('ZREM', unpack(left)) end
  end
end

local function enlist(c)
  raise(D)
  list(by_state(state_of(c)), c)
  list(under(c.user_id), c)
  if c.scope_id ~= c.user_id then list(under(c.scope_id), c) end
end

local function relist(c, from)
  local to = state_of(c)
  if to == from then return end
  leave_list(by_state(from), c.ref)
  list(by_state(to), c)
end

-- Before its record goes. One that says nothing of itself may be in any state.
local function unlist(user, ref, key)
  -- First: what a full store refuses must not have been taken off its lists.
  raise(D)
  local was = redis.pcall('HMGET', key, 'terminal', 'scope_id')
  for _, state in ipairs(was[1] and { was[1] } or { ${ALL} }) do leave_list(by_state(state), ref) end
  leave_list(under(user), ref)
  if was[2] and was[2] ~= user then leave_list(under(was[2]), ref) end
end
`
