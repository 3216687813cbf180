-- The list of nodes, and what they count in each minute.
-- Inputs: the arguments of `BEAT` (heartbeat.ts) and `WRITE` (churn.ts). Outputs: the table `nodes`, and `churn:<minute>`.
-- Publishes nothing.

--@script beat
--@include ../store/tables.lua
local t = 'nodes'
sweep(t)
put(t, id, load(t, id), { node_id = id, updated_at = now, ix = { { 'node_id', id } } }, record, now + tonumber(kept_ms))
if redis.call('ZCARD', K(t, 'all')) > {{NODES_MAX}} then drop(t, redis.call('ZRANGE', K(t, 'leaves'), 0, 0)[1]) end
return now

--@script churn
-- Stores the counts of a node for some minutes, and the number of open commands in the current one. `churn:<minute>` is a
-- sorted set whose scores are counts. Its members are `watched`, `admitted` and `ended:<state>`, each followed by
-- ` <life> <node>`, and `open:<state>`, with `counted-at` as the time of these. The counts are totals since the node process started (its life), so a repeated or late
-- write changes nothing. If there are too many members, `partial` marks the sums of the minute as unknown.
local function key_of(minute) return K('delivery', 'churn', string.format('%.0f', minute)) end

local function add(key, score, member)
  if redis.call('ZCARD', key) >= {{ENTRIES}} and not redis.call('ZSCORE', key, member) then
    score, member = 0, 'partial'
  end
  redis.call('ZADD', key, 'GT', score, member)
end

-- If another application has written there, nothing is counted, and readers report it.
local function is_ours(key)
  local type_of = redis.call('TYPE', key).ok
  return type_of == 'zset' or type_of == 'none'
end

for _, one in ipairs(cjson.decode(counted)) do
  local key = key_of(one.minute)
  if is_ours(key) then
    local label = ' ' .. life .. ' ' .. node
    add(key, 0, 'watched' .. label)
    for what, times in pairs(one.counts) do add(key, times, what .. label) end
    redis.call('PEXPIRE', key, {{KEPT_MS}})
  end
end
local present = key_of(math.floor(now / {{MINUTE_MS}}))
if not is_ours(present) then return 0 end
local function counted_at() return tonumber(redis.call('ZSCORE', present, 'counted-at') or 0) end
-- Ignores counts of open commands that were read in an earlier minute, or before those that are stored. The latest of a minute
-- stay: they may be lower than earlier ones.
if open ~= '' then
  local read = cjson.decode(open)
  if present == key_of(math.floor(read.at / {{MINUTE_MS}})) and read.at > counted_at() then
    for state, times in pairs(read.counts) do redis.call('ZADD', present, times, 'open:' .. state) end
    redis.call('ZADD', present, read.at, 'counted-at')
    redis.call('PEXPIRE', present, {{KEPT_MS}})
  end
end
return now - counted_at() >= {{COUNT_MS}} and 1 or 0
