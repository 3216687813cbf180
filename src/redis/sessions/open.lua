--@include ./sessions.lua
--@include ../store/arrive.lua

return once(attempt, function()
  local most = tonumber(max_sessions)
  sweep_sessions(most)
  if not has_room(K(t, 'live-of', owner), max_per_owner, K(t, 'live'), most) then return refuse('capacity_exceeded') end
  -- An id may be reused: deletes timers and shares of the earlier session.
  local before = owner_of(id)
  if before then
    unplace(t, 'live', before, id)
    unhold(t, 'final', before, id)
    unlist(id, before)
  end
  redis.call('DEL', session_key(id), shares_key(id), ends_key(id))
  raise(t)
  local seq = arrive(t)
  redis.call('HSET', session_key(id), 'session_id', id, 'owner', owner, 'state', 'pending', 'opened_at', now,
    'updated_at', now, 'site_id', site, unpack(fields))
  local expires = '+inf'
  if ttl ~= '' then
    expires = now + ttl
    redis.call('HSET', session_key(id), 'expires_at', expires)
  end
  place(t, 'live', owner, id, expires)
  redis.call('ZADD', K(t, 'all'), seq, id)
  redis.call('ZADD', K(t, 'owner', owner), seq, id)
  redis.call('ZADD', K(t, 'site_id', site), seq, id)
  redis.call('ZADD', K(t, 'at', owner, site), expires, id)
  return shown(id)
end)
