/**
 * What every script starts with: the clock and the keys.
 *
 * `sender` is the injected time, if any; the instant of this store's own clock from which on the script does nothing,
 * because its sender has given it up by then; and the number of shards that the sender puts records by, which each shard
 * has written down: a store that has lost it, or was given another one, is not written to before that is cleared up.
 */
import { FENCE_LUA } from './fence.js'
import { KEY_LUA } from './keys.js'

/** Rows that one write sweeps at most: more than it adds, so that a table never grows beyond what is alive for long. */
const SWEEP = 16

export const PRELUDE = `${KEY_LUA}
local frozen, ends, shards = string.match(sender, '^(%S*) (%d+) (%d+)$')
${FENCE_LUA}
local now = tonumber(frozen) or stored_now
if redis.pcall('GET', K('shards')) ~= shards then return redis.error_reply('SHARDS are other ones') end

-- Once a script and table, which is one step. Whatever frees memory comes first: a full store lets nothing begin by this.
local raised = {}
local function raise(t)
  if raised[t] then return end
  redis.call('SET', K(t, 'version'), time[1] .. '.' .. time[2])
  -- Not before: in a full store it fails, and the next call of the run must fail by it too.
  raised[t] = true
end

local function refuse(code) return redis.error_reply('REFUSE ' .. code) end`

/**
 * A table `t` of a shard is:
 * - `t:row:<id>`: two lines. The first is the row's state, a small flat JSON object that scripts read and rewrite; the
 *   second is JSON that only JavaScript writes (cjson would turn an empty list into an object). A reader merges both.
 * - `t:all`: ids by sequence (the order of every page), `t:<index>:<value>` the same for one value of an index;
 * - `t:version`: when something of the table that readers show was last written, in microseconds of the store's clock: a reader
 *   that finds the same there need not read again. A counter would come to the same number again in a store that has lost it.
 * - `t:users`: the users that have a row, by their bytes;
 * - `t:leaves`: ids by the time at which they leave, `t:live:<user>` the same for one user. Writes sweep a few of those
 *   that are due: readers never write, and skip them.
 *
 * `state.seq` is the row's place, `state.ix` its indexes as [name, value] pairs (the first is always the user, and
 * alone it is left out).
 */
export const TABLES = `
-- state, body of a row; nil where there is none that a script of ours wrote.
local function load(t, id)
  local value = redis.pcall('GET', K(t, 'row', id))
  if type(value) ~= 'string' then return nil end
  local cut = string.find(value, '\\n', 1, true)
  if not cut then return nil end
  local good, state = pcall(cjson.decode, string.sub(value, 1, cut - 1))
  if not good or type(state) ~= 'table' then return nil end
  if type(state.ix) ~= 'table' then
    if type(state.user_id) ~= 'string' then return nil end
    state.ix = { { 'user_id', state.user_id } }
  end
  return state, string.sub(value, cut + 1)
end

-- The index that every row has goes without saying: readers parse each byte of a page. What is in no list is written untold.
local function write(t, id, state, body)
  local ix = state.ix
  if #ix == 1 and ix[1][1] == 'user_id' and ix[1][2] == state.user_id then state.ix = nil end
  redis.call('SET', K(t, 'row', id), cjson.encode(state) .. '\\n' .. body)
  state.ix = ix
end

local function save(t, id, state, body)
  raise(t)
  write(t, id, state, body)
end

local function unindex(t, id, ix)
  for i = 1, #ix do redis.call('ZREM', K(t, ix[i][1], ix[i][2]), id) end
end

local function drop(t, id)
  local state = load(t, id)
  redis.call('DEL', K(t, 'row', id))
  raise(t)
  redis.call('ZREM', K(t, 'all'), id)
  redis.call('ZREM', K(t, 'leaves'), id)
  if not state then return end
  unindex(t, id, state.ix)
  local user = state.ix[1]
  redis.call('ZREM', K(t, 'live', user[2]), id)
  if redis.call('EXISTS', K(t, user[1], user[2])) == 0 then redis.call('ZREM', K(t, 'users'), user[2]) end
end

local function leave(t, id, state, leaves)
  redis.call('ZADD', K(t, 'leaves'), leaves, id)
  redis.call('ZADD', K(t, 'live', state.ix[1][2]), leaves, id)
end

local function sweep(t)
  local gone = redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, ${SWEEP})
  for i = 1, #gone do drop(t, gone[i]) end
end

-- Inserts or replaces a row that leaves at \`leaves\` (ms, or '+inf'). \`was\` is its state before, if it had one.
local function put(t, id, was, state, body, leaves)
  if was then
    state.seq = was.seq
    unindex(t, id, was.ix)
  else
    state.seq = redis.call('INCR', K(t, 'seq'))
  end
  save(t, id, state, body)
  redis.call('ZADD', K(t, 'all'), state.seq, id)
  for i = 1, #state.ix do redis.call('ZADD', K(t, state.ix[i][1], state.ix[i][2]), state.seq, id) end
  redis.call('ZADD', K(t, 'users'), 0, state.ix[1][2])
  leave(t, id, state, leaves)
end`
