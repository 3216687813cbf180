/**
 * Sorted sets of a shard that every move writes, for the scripts of the dispatcher: what the calls of a run say of one is written
 * by one command, when they have been run.
 */
import { CommandState } from '../../contract/delivery.js'
import { STATE_LUA } from './format.js'

/** Words of one command: scores and members, so an even number. */
const SLICE = 2_000

const ALL = CommandState.options.map((state) => `'${state}'`).join(', ')

/**
 * `state:<state>` has the references of all commands in that state, `of-id:<id>` those of a user and of a scope of that
 * name, which are one for most commands; by the number of the admission. A list ends with its last record. No script of the
 * dispatcher reads these. Whoever reads `wakes`, `ended`, `rejected` or `todo:<incarnation>` says so first: `written`.
 */
export const DELIVERY_LISTS = `
${STATE_LUA}

-- By the name of a sorted set: members to stand there, each behind its score; left, those that are not to; and the calls
-- that say so.
local gathered = {}

-- Of what is said of one place the last is so.
local function list(name, score, member)
  local of = gathered[name]
  if not of then
    gathered[name] = { score, member, calls = { number } }
    return
  end
  local last = #of
  of[last + 1], of[last + 2] = score, member
  of.calls[#of.calls + 1] = number
  if of.left then of.left[member] = nil end
end

local function leave_list(name, member)
  local of = gathered[name]
  if not of then
    gathered[name] = { calls = { number }, left = { [member] = true } }
    return
  end
  of.calls[#of.calls + 1] = number
  of.left = of.left or {}
  of.left[member] = true
end

-- So many words at a time as Lua's stack has room for by far.
local function in_slices(command, key, words)
  for i = 1, #words, ${SLICE} do
    local reply = redis.pcall(command, key, unpack(words, i, math.min(#words, i + ${SLICE - 1})))
    if type(reply) == 'table' then return reply end
  end
end

-- The calls whose list is none have failed. One that is running is not told: it asks for what it reads next, and hears it then.
local function written(name)
  local of = gathered[name]
  if not of then return end
  gathered[name] = nil
  local key, left = KEYS[1] .. 'delivery:' .. name, {}
  for member in pairs(of.left or {}) do left[#left + 1] = member end
  local met = in_slices('ZADD', key, of) or in_slices('ZREM', key, left)
  if met then for _, n in ipairs(of.calls) do fail(n, met) end end
end

local function of_id(name) return 'of-id:' .. encode(name) end

local function enlist(state, user, scope, seq, ref)
  raise(D)
  list('state:' .. state, seq, ref)
  list(of_id(user), seq, ref)
  if scope ~= user then list(of_id(scope), seq, ref) end
end

local function relist(c, from)
  local to = state_of(c)
  if to == from then return end
  leave_list('state:' .. from, c.ref)
  list('state:' .. to, c.seq, c.ref)
end

-- Before its record goes. One that says nothing of itself may be in any state.
local function unlist(user, ref, key)
  -- First: what a full store refuses must not have been taken off its lists.
  raise(D)
  local was = fields_of(redis.pcall('GET', key))
  local terminal, scope = was and was.terminal or '', was and was.scope_id or ''
  for _, state in ipairs(terminal ~= '' and { terminal } or { ${ALL} }) do leave_list('state:' .. state, ref) end
  leave_list(of_id(user), ref)
  if scope ~= '' and scope ~= user then leave_list(of_id(scope), ref) end
  return was
end
`
