-- Tables of rows, which list families are kept in. Of a table `t` a shard has:
-- - `t:row:<id>`: two lines. The first is the state of the row, a small flat JSON object that scripts read and rewrite.
--   The second is JSON that only JavaScript writes: cjson would turn an empty list into an object. Readers merge both.
-- - `t:all`: ids by sequence, which is the order of every page; `t:<index>:<value>` the same for one value of an index;
-- - `t:users`: users with a row, by their bytes;
-- - `t:leaves`: ids by the time at which they expire, `t:live:<user>` the same for one user. Writes delete a few expired
--   rows each; readers never write, and skip them.
--
-- `state.seq` is the sequence of the row, `state.ix` its indexes as { name, value } pairs. The first is always the
-- user.

-- Expired rows that one write deletes at most: more than it adds, so that a table does not keep growing.
local SWEEP_ROWS = 16

-- Returns the state and the body of a row; nil if there is none, or if another application has written it. `value`: its
-- text, if it has been read.
local function load(t, id, value)
  value = value or redis.pcall('GET', K(t, 'row', id))
  if type(value) ~= 'string' then return nil end
  local cut = string.find(value, '\n', 1, true)
  if not cut then return nil end
  local good, state = pcall(cjson.decode, string.sub(value, 1, cut - 1))
  if not good or type(state) ~= 'table' then return nil end
  if type(state.ix) ~= 'table' then
    if type(state.user_id) ~= 'string' then return nil end
    state.ix = { { 'user_id', state.user_id } }
  end
  return state, string.sub(value, cut + 1)
end

-- Writes a row, which keeps its lease unless it is new. An index by user alone is omitted from the text:
-- readers parse every byte of a page.
local function save(t, id, state, body, is_new)
  local ix = state.ix
  if #ix == 1 and ix[1][1] == 'user_id' and ix[1][2] == state.user_id then state.ix = nil end
  local key, text = K(t, 'row', id), cjson.encode(state) .. '\n' .. body
  if is_new then write('SET', key, text) else redis.call('SET', key, text, 'KEEPTTL') end
  state.ix = ix
end

local function unindex(t, id, ix)
  for i = 1, #ix do redis.call('ZREM', K(t, ix[i][1], ix[i][2]), id) end
end

local function drop(t, id)
  local state = load(t, id)
  redis.call('DEL', K(t, 'row', id))
  redis.call('ZREM', K(t, 'all'), id)
  redis.call('ZREM', K(t, 'leaves'), id)
  if not state then return end
  unindex(t, id, state.ix)
  local user = state.ix[1]
  redis.call('ZREM', K(t, 'live', user[2]), id)
  if redis.call('EXISTS', K(t, user[1], user[2])) == 0 then redis.call('ZREM', K(t, 'users'), user[2]) end
end

local function leave(t, id, state, leaves)
  write('ZADD', K(t, 'leaves'), leaves, id)
  write('ZADD', K(t, 'live', state.ix[1][2]), leaves, id)
end

local function sweep(t)
  local gone = redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_ROWS)
  for i = 1, #gone do drop(t, gone[i]) end
end

--@include ./arrive.lua

-- Inserts or replaces a row that expires at `leaves` (ms, or '+inf'). `was` is its state before, if it had one.
local function put(t, id, was, state, body, leaves)
  state.seq = was and was.seq or arrive(t)
  if was then
    -- First, because a full store accepts what needs memory once a script has written.
    redis.call('PEXPIREAT', K(t, 'row', id), lease_end())
    for i = 1, #was.ix do
      local name, value = was.ix[i][1], was.ix[i][2]
      if not (state.ix[i] and state.ix[i][1] == name and state.ix[i][2] == value) then redis.call('ZREM', K(t, name, value), id) end
    end
  end
  save(t, id, state, body, not was)
  write('ZADD', K(t, 'all'), state.seq, id)
  for i = 1, #state.ix do write('ZADD', K(t, state.ix[i][1], state.ix[i][2]), state.seq, id) end
  write('ZADD', K(t, 'users'), 0, state.ix[1][2])
  leave(t, id, state, leaves)
end
