--@include ./connections.lua

sweep_connections()
return once(id, function()
  local state = cjson.decode(fields)
  local current = K(t, 'current', state.user_id, state.client_id)
  local known = redis.call('GET', current)
  local was, was_body
  if known then was, was_body = load(t, known) end
  local superseded = 0
  if was and (was.ended_at or was.seen_at + was.lost_after_ms) + was.retention_ms > now then
    superseded = tonumber(was.superseded) or 0
  end
  if was and was.ended_at then was = nil end
  local replaces = was and was.seen_at + was.lost_after_ms > now
  if not replaces and not has_room(K(t, 'beats-of', state.user_id), max_per_user, K(t, 'beats'), max_connections) then
    return refuse('capacity_exceeded')
  end
  if was then
    if not replaces then lose(known, was, was_body)
    elseif was.instance_id == state.instance_id then finish(known, was, was_body, 'disconnected', {{RECONNECTED}}, now)
    else
      superseded = superseded + 1
      finish(known, was, was_body, 'superseded', {{NEW_INSTANCE}}, now)
    end
  end
  if superseded > 0 then state.superseded = superseded end
  state.connected_at, state.seen_at = now, now
  state.lost_after_ms, state.retention_ms = tonumber(lost_after), tonumber(retention)
  state.ix = { { 'user_id', state.user_id } }
  if type(state.node_id) == 'string' then state.ix[2] = { 'node_id', state.node_id } end
  put(t, id, nil, state, content, now + lost_after + retention)
  place(t, 'beats', state.user_id, id, now + lost_after)
  redis.call('SET', current, id)
  churn('opened', state, now)
  return { string.format('%.0f', now), superseded }
end)
