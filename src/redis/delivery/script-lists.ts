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
  return c.terminal or c.phase == 'acknowledged' and c.phase or tonumber(c.attempts) > 0 and 'attempted' or 'waiting'
end

-- By the kind and name of a list: references to stand there, each behind its number; left, those that are not to; and the
-- calls that say so.
local gathered = { state = {}, ['of-id'] = {} }

-- Of what is said of one place the last is so.
local function list(kind, name, seq, ref)
  local of = gathered[kind][name]
  if not of then
    gathered[kind][name] = { seq, ref, calls = { number } }
    return
  end
  local last = #of
  of[last + 1], of[last + 2] = seq, ref
  of.calls[#of.calls + 1] = number
  if of.left then of.left[ref] = nil end
end

local function leave_list(kind, name, ref)
  local of = gathered[kind][name]
  if not of then
    gathered[kind][name] = { calls = { number }, left = { [ref] = true } }
    return
  end
  of.calls[#of.calls + 1] = number
  of.left = of.left or {}
  of.left[ref] = true
end

-- fail is told of the calls whose list is none.
local function write_list(key, of, fail)
  local function check(reply)
    if type(reply) == 'table' then for _, n in ipairs(of.calls) do fail(n, reply) end end
  end
  if #of > 0 then check(redis.pcall('ZADD', key, unpack(of))) end
  if not of.left then return end
  local left = {}
  for ref in pairs(of.left) do left[#left + 1] = ref end
  if #left > 0 then check(redis.pcall('ZREM', key, unpack(left))) end
end

local function write_lists(fail)
  for kind, lists in pairs(gathered) do
    for name, of in pairs(lists) do write_list(ended(D, kind, encode(name)), of, fail) end
  end
end

local function enlist(state, user, scope, seq, ref)
  raise(D)
  list('state', state, seq, ref)
  list('of-id', user, seq, ref)
  if scope ~= user then list('of-id', scope, seq, ref) end
end

local function relist(c, from)
  local to = state_of(c)
  if to == from then return end
  leave_list('state', from, c.ref)
  list('state', to, c.seq, c.ref)
end

-- Before its record goes. One that says nothing of itself may be in any state.
local function unlist(user, ref, key)
  -- First: what a full store refuses must not have been taken off its lists.
  raise(D)
  local was = redis.pcall('HMGET', key, 'terminal', 'scope_id')
  for _, state in ipairs(was[1] and { was[1] } or { ${ALL} }) do leave_list('state', state, ref) end
  leave_list('of-id', user, ref)
  if was[2] and was[2] ~= user then leave_list('of-id', was[2], ref) end
end
`
