-- Makes the second arrival of a write harmless: a client resends a write whose reply was lost.

-- How long the reply of a write is remembered, in ms. Clients resend within seconds after a reconnect.
local REMEMBERED_MS = 60000

-- Does the work when its token arrives for the first time. Later arrivals get the first reply (a refusal too) and
-- change nothing. Replies are stored as they are, so they should be small.
local function once(token, work)
  local key = K('once', token)
  local before = redis.call('GET', key)
  if before then
    local reply = cjson.decode(before)
    if reply.refused then return redis.error_reply(reply.refused) end
    return reply.answer
  end
  local answer = work()
  local refused = type(answer) == 'table' and answer.err
  local reply = refused and { refused = refused } or { answer = answer }
  redis.call('SET', key, cjson.encode(reply), 'PX', REMEMBERED_MS)
  return answer
end
