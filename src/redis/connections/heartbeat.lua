--@include ./connections.lua

sweep_connections()
local state, body = connected(id)
if not state then return 0 end
now = math.max(now, state.seen_at)
state.seen_at = now
local by, at = string.match(tostring(state.sent), '^(%S+) (%d+)$')
local own_by, own_at = string.match(sent, '^(%S+) (%d+)$')
if content ~= '' and (by ~= own_by or tonumber(own_at) > tonumber(at)) then body, state.sent = content, sent end
save(t, id, state, body)
leave(t, id, state, now + state.lost_after_ms + state.retention_ms)
place(t, 'beats', state.user_id, id, now + state.lost_after_ms)
return 1
