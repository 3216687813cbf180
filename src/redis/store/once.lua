-- Makes the second arrival of a write harmless: a client sends a write again when its reply was lost.

-- How long the answer of a write is remembered, in ms. Clients send again within seconds of a reconnection.
local REMEMBERED_MS = 60000

-- Does the work when its token arrives for the first time. Later arrivals get the first answer, a refusal too, and
-- change nothing. Answers are kept as they are, so they should be small.
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
