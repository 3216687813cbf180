/** What becomes of an attempt that led to nothing, for the scripts of the dispatcher that can meet one. */
import { BACKOFF_MAX_MS, BACKOFF_MS } from '../../contract/delivery-rules.js'

export const DELIVERY_RECOVERY = `
local function note_recovery(c, reason)
  c.recovered = text(count_of(string.match(c.recovered, '^[^\\n]*')) + 1) .. '\\n' .. now_text .. '\\n' .. reason
  count('recovery ' .. reason)
end

-- After an attempt that led to nothing: another one after a pause, or the end.
local function recover(c, reason)
  local attempts = tonumber(c.attempts)
  if attempts >= count_of(c.max_attempts) then return finish(c, 'failed', 'attempts_exhausted') end
  c.phase = 'backoff'
  note_recovery(c, reason)
  save(c)
  list('wakes', text(now + math.min(${BACKOFF_MAX_MS}, ${BACKOFF_MS} * 2 ^ (attempts - 1))), c.ref)
end

local function ready(c)
  c.phase = 'ready'
  save(c)
  leave_list('wakes', c.ref)
  redis.call('ZADD', box(c), c.seq, c.command_id)
  call(c.user_id, c.client_id, c.mailbox)
end

-- The claim that led to this attempt never reached its node: it goes back, and counts against no bound.
local function requeue(c)
  c.max_attempts = text(count_of(c.max_attempts) + 1)
  note_recovery(c, 'requeued')
  ready(c)
end

-- The patience for an attempt is over: handed over and not acknowledged, or with the hand-over still open, at a node that
-- lives or at one that has fallen silent.
local function give_up(c)
  local reason = 'ack_timeout'
  if c.last_outcome == '' then
    local lease = c.incarnation ~= '' and zcall('ZSCORE', 'incarnations', c.incarnation)
    reason = lease and tonumber(lease) > now and 'deliver_timed_out' or 'lease_expired'
  end
  conclude(c, 'timed_out', reason)
  recover(c, reason)
  count('other attempt_timed_out')
end
`
