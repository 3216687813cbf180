/** How a mailbox gives its next command away, for the scripts of the dispatcher: by a claim of its own, or behind another call. */
import type { StoreReply } from '../store/reply.js'
import { FORMER_LUA } from './format.js'

/** Between the parts of a call or an answer, but for the last, which may be any text: no id, number or JSON has it. */
export const SEPARATOR = '\0'

/** Entries at the head of a mailbox that one claim looks at: expired ones that the loop has not reached. */
const CLAIM_LOOKS = 16

/** A command as it was claimed; how many wait `behind` it. Instants are epoch ms; `untilMs`: how long the attempt has patience. */
interface Claimed {
  command_id: string
  action: string
  payload: string
  attempt: number
  deadlineAt: number
  behind: number
  untilMs: number
}

/** `missing` or `replaced` for a waiter that is unknown, `empty`, or `more` where another claim is to look again. */
export type ClaimReply = 'missing' | 'replaced' | 'empty' | 'more' | Claimed

export function readClaim(reply: StoreReply): ClaimReply {
  if (reply === 'missing' || reply === 'replaced' || reply === 'empty' || reply === 'more') return reply
  const [attempt, deadlineAt, behind, untilMs, command_id = '', action = '', ...payload] =
    String(reply).split(SEPARATOR)
  return {
    command_id,
    action,
    payload: payload.join(SEPARATOR),
    attempt: Number(attempt),
    deadlineAt: Number(deadlineAt),
    behind: Number(behind),
    untilMs: Number(untilMs),
  }
}

/**
 * `claim_next` takes the first command of a mailbox for the waiter of that token, by the number of its claim. The same number
 * again is the same claim.
 */
export const DELIVERY_CLAIMS = `${FORMER_LUA}
local function is_emptied(user, client) leave_list(todo_of(incarnation), user .. '\\n' .. client) end

local function note_claim(key, claim, id, attempt) redis.call('HSET', key, 'claim', claim, 'claimed', id, 'attempt', attempt) end

local function claimed(c, waiting, payload_text, until_ms)
  local behind = redis.call('ZCARD', waiting)
  withdraw_call(c.user_id, c.client_id, c.mailbox)
  if behind == 0 then is_emptied(c.user_id, c.client_id) end
  -- One text: the store looks at a table seven times, and at each of its values, before it answers it.
  return c.attempts .. '\\0' .. c.deadline_at .. '\\0' .. behind .. '\\0' .. until_ms .. '\\0' .. c.command_id .. '\\0' .. c.action .. '\\0' .. payload_text
end

-- The same claim again: its answer was lost.
local function claimed_before(user, client, mailbox, waiter, waiting)
  local c = waiter[4] and look(user, client, waiter[4], mailbox)
  local payload_text = c and c.phase == 'attempted' and c.attempts == waiter[5] and c.last_outcome == '' and redis.call('GET', payload(c))
  if not payload_text or c.action == '' then return 'more' end
  written('wakes')
  return claimed(c, waiting, payload_text, zcall('ZSCORE', 'wakes', c.ref) or '')
end

local function claim_next(user, client, mailbox, token, claim)
  local wanted = tonumber(claim)
  local key, waiting = ended(D, 'waiter', mailbox), ended(D, 'box', mailbox)
  local waiter = redis.call('HMGET', key, 'token', 'instance', 'claim', 'claimed', 'attempt')
  if waiter[1] ~= token then return waiter[1] and 'replaced' or 'missing' end
  local last = tonumber(waiter[3]) or 0
  if wanted < last then return 'more' end
  if wanted == last then return claimed_before(user, client, mailbox, waiter, waiting) end
  -- First: what a full store refuses to write must still lie there.
  raise(D)
  for _ = 1, ${CLAIM_LOOKS} do
    local id = redis.call('ZPOPMIN', waiting)[1]
    if not id then
      note_claim(key, claim, '', '')
      is_emptied(user, client)
      return 'empty'
    end
    local path = mailbox .. ':' .. encode(id)
    local found = redis.call('MGET', ended(D, 'command', path), ended(D, 'payload', path))
    local c
    if found[1] then c = looked_at(record_of(found[1], user, client, id, mailbox, path))
    else c = look(user, client, id, mailbox, path) end
    if c and c.phase == 'ready' then
      if found[2] and c.action ~= '' then
        local from = state_of(c)
        if c.attempts ~= '0' then keep_attempt(c) end
        c.phase, c.attempts, c.last_outcome, c.concluded, c.incarnation = 'attempted', text(c.attempts + 1), '', '', incarnation
        c.attempted = now_text .. '\\n' .. waiter[2] .. '\\n' .. node
        save(c)
        relist(c, from)
        note_claim(key, claim, id, c.attempts)
        list('wakes', patience_text, c.ref)
        return claimed(c, waiting, found[2], patience_text)
      end
      finish(c, 'failed', 'payload_missing')
    end
  end
  note_claim(key, claim, '', '')
  return 'more'
end

-- Behind another call, as '' for none or its number and token: its failure is its own. Only where that call has left the
-- mailbox free: whoever waits there may have the command before in hand yet.
local function claim_behind(user, client, mailbox, next_claim)
  if next_claim == '' or not freed then return end
  local gap = string.find(next_claim, ' ', 1, true)
  local claim, token = string.sub(next_claim, 1, gap - 1), string.sub(next_claim, gap + 1)
  local good, answer = pcall(claim_next, user, client, mailbox, token, claim)
  if good then claims[#claims + 1], claims[#claims + 2] = number, answer end
end
`
