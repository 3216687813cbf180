/** What makes the second arrival of a write harmless: a client sends again what it does not know the fate of. */

/** How long an attempt is remembered, in ms: clients that send again do so within seconds of a reconnection. */
const REMEMBERED_MS = 60_000

/**
 * `once(token, work)` does the work of an attempt when its token arrives for the first time. Whenever it arrives again,
 * the answer is the first one, a refusal too, and nothing is done: what came in between stays. Answers are kept as they
 * are, so they should be small.
 */
export const IDEMPOTENCE = `
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
  redis.call('SET', key, cjson.encode(reply), 'PX', ${REMEMBERED_MS})
  return answer
end
`
