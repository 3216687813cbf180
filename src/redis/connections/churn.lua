-- `churn:<minute>`: what happened in it and how often, as `opened <type> <node>` and `ended <reason> <type> <node>`, without a
-- node where there is none. A minute is there once somebody has watched it, were it only to find that nothing happens. What
-- somebody else has written there is no reason to refuse a connection.
local function churn_key(at) return K(t, 'churn', string.format('%.0f', math.floor(at / {{MINUTE_MS}}))) end

local function watch()
  local key = churn_key(now)
  if redis.pcall('ZADD', key, 'NX', 0, 'watched') == 1 then redis.call('PEXPIRE', key, {{CHURN_KEPT_MS}}) end
end

-- What happened at `at`, or is noticed only now where nobody watched that minute.
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
