--@include ./calls.lua

-- How long a reply is kept for the node that opened the call, in ms: longer than a lost connection and a poll take.
local REPLY_MS = 60000

local function is_foreign(call)
  if call.user_id ~= user or call.client_id ~= client then return true end
  return call.instance_id ~= cjson.null and instance ~= '' and call.instance_id ~= instance
end
local call = load(t, id)
if redis.call('GET', K(t, 'by', id)) == name then return 'settled' end
if not call or call.deadline_at <= now then return counts_late == '1' and drop_reply(name, 'late') or 'late' end
if has_sender == '1' and is_foreign(call) then return drop_reply(name, 'foreign') end
end_call(id, how, call)
if call.attempt then
  redis.call('SET', K(t, 'over', call.attempt), 1, 'PX', NAMED_MS)
  redis.call('SET', K(t, 'reply-to', id), call.attempt, 'PX', REPLY_MS)
end
redis.call('SET', K(t, 'by', id), name, 'PX', NAMED_MS)
redis.call('SET', K(t, 'reply', id), reply, 'PX', REPLY_MS)
redis.call('SPUBLISH', K(t, 'signals', call.node), id)
return 'settled'
