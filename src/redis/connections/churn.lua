-- Counts connections that open and end, minute by minute. `churn:<minute>` is a sorted set: entries `opened <type>
-- <node>` and `ended <reason> <type> <node>` by how often, without a node where the connection has none. A minute
-- exists once a script has run in it, even when nothing happened. If another application has written there, connections
-- work all the same.
local function churn_key(at) return K(t, 'churn', string.format('%.0f', math.floor(at / {{MINUTE_MS}}))) end

local function watch()
  local key = churn_key(now)
  if redis.pcall('ZADD', key, 'NX', 0, 'watched') == 1 then redis.call('PEXPIRE', key, {{CHURN_KEPT_MS}}) end
end

-- Counts an event at `at`; in the current minute if no script ran in that one.
local function churn(what, state, at)
  local key = churn_key(at)
  if redis.call('EXISTS', key) == 0 then key = churn_key(now) end
  local type_of = tostring(state.client_type)
  local field = what .. ' ' .. type_of
  if type(state.node_id) == 'string' then field = field .. ' ' .. state.node_id end
  if not redis.pcall('ZSCORE', key, field) and redis.call('ZCARD', key) > {{CHURN_COMBINATIONS}} then
    field = (what == 'opened' and what or 'ended ' .. {{OTHER}}) .. ' ' .. type_of
  end
  redis.pcall('ZINCRBY', key, 1, field)
end

local function churn_end(state, reason, at)
  churn('ended ' .. (type(reason) == 'string' and reason or {{UNSPECIFIED}}), state, at)
end
