/** The scripts of the dispatcher for admission and attempts, one atomic step each. */
import { isOne, listOf, nothing, type StoreReply } from '../store/reply.js'
import { deliveryScript, SEPARATOR } from './node-script.js'

/** Entries at the head of a mailbox that one claim looks at: expired ones that the loop has not reached. */
const CLAIM_LOOKS = 16

/** A command as it was claimed: how many wait behind it, and until when the attempt has patience. */
export type ClaimedReply = Exclude<ReturnType<typeof readClaimed>, string>

function readClaimed(reply: StoreReply) {
  if (reply === 'missing' || reply === 'replaced' || reply === 'empty' || reply === 'more') return reply
  const [attempt, deadlineAt, behind, untilMs, command_id = '', action = '', ...payload] =
    String(reply).split(SEPARATOR)
  const numbers = {
    attempt: Number(attempt),
    deadlineAt: Number(deadlineAt),
    behind: Number(behind),
    untilMs: Number(untilMs),
  }
  return { command_id, action, payload: payload.join(SEPARATOR), ...numbers }
}

/**
 * In the shard of the scope, where that is another than the command's. `ttl` is the time to the deadline, `attempt` names the
 * dispatch: several of one command share its place, and the first may be refused when another one is admitted by it.
 */
export const RESERVE = deliveryScript(
  'delivery.reserve',
  { args: ['scope', 'ref', 'ttl', 'capacity', 'news', 'attempt'], answer: isOne },
  `
local deadline = text(now + ttl)
if not reserve(scope, ref, deadline, tonumber(capacity), news ~= '') then return 0 end
zcall('ZADD', 'scope-until', 'GT', deadline, scope)
local sharers = sharers_key(scope, ref)
redis.call('SADD', sharers, attempt)
if redis.call('PTTL', sharers) < tonumber(ttl) then redis.call('PEXPIRE', sharers, ttl) end
return 1`,
)

/** Of one dispatch that came to nothing, or with '' as its `attempt` of a command that is over. */
export const RELEASE = deliveryScript(
  'delivery.release',
  { args: ['scope', 'ref', 'attempt'], answer: nothing, freesMemory: true },
  `
local sharers = sharers_key(scope, ref)
if attempt == '' then
  redis.call('DEL', sharers)
else
  redis.call('SREM', sharers, attempt)
  if redis.call('EXISTS', sharers) == 1 then return 1 end
end
release(scope, ref)
return 1`,
)

/** Answers the record, or `null` where none is retained. */
export const LOOK = deliveryScript(
  'delivery.look',
  { args: ['user', 'client', 'id'], answer: (record) => (record === 0 ? null : record) },
  `
local c = look(user, client, id, mailbox, path)
return c and shown(c.key) or 0`,
)

/**
 * `scope_shard` is that of the scope where it is another one, `ttl` the time to the deadline, `needs` which waiter it needs
 * ('', any, current) and `current` the current instance; `news` says that the store is to be told the capacity, `refused` why it is refused already, or ''. Answers what became
 * of it, and the record, or of a new one its deadline.
 */
export const ADMIT = deliveryScript(
  'delivery.admit',
  {
    args: [
      ...(['user', 'client', 'id', 'action', 'scope', 'scope_shard', 'capacity', 'news'] as const),
      ...(['ttl', 'max_attempts', 'fingerprint', 'needs', 'current'] as const),
      ...(['refused', 'payload_text'] as const),
    ],
    answer: (reply) => {
      if (typeof reply === 'string') return { became: 'admitted', record: reply }
      const [became, record = null] = listOf(reply)
      return { became, record }
    },
  },
  `
local key, waiting = ended(D, 'command', path), ended(D, 'box', mailbox)
local known, isTaken
-- A tenth of what it costs to read a record that is not there.
if redis.call('EXISTS', key) == 1 then known, isTaken = look(user, client, id, mailbox, path) end
if known and known.terminal ~= 'rejected' then
  local same = known.fingerprint == fingerprint
  count(same and 'other dispatch_repeated' or 'other dispatch_conflict')
  if known.phase == 'ready' then
    -- A claim may have failed half-way, with the command in its hand.
    if not redis.call('ZSCORE', waiting, id) then redis.call('ZADD', waiting, known.seq, id) end
    -- The first admission's word to the node may have been lost.
    call(user, client, mailbox)
  end
  return { same and 'known' or 'conflict', shown(key) }
end

local ref = user .. '\\n' .. client .. '\\n' .. id
local deadline = text(now + ttl)
local refusal = ''
if needs ~= '' and not waited_for(mailbox, needs == 'current' and current) then
  refusal = 'no_waiter'
elseif refused ~= '' then
  refusal = refused
elseif tracked_now() >= tracked_max then
  refusal = 'overloaded'
elseif held_by(user) >= held_max then
  refusal = 'capacity_exceeded'
elseif scope_shard == '' and not reserve(scope, ref, deadline, tonumber(capacity), news ~= '') then
  refusal = 'capacity_exceeded'
end

if known or isTaken then
  unlist(user, ref, key)
  redis.call('DEL', key)
  zcall('ZREM', 'rejected', ref)
  zcall('ZREM', 'ended', ref)
end
local seq = next_number()
raise(D)
if refusal ~= '' then
  redis.call('HSET', key, 'phase', 'ended', 'ref', ref, 'scope_id', scope, 'fingerprint', fingerprint, 'admitted_at', now_text,
    'deadline_at', deadline, 'seq', seq, 'terminal', 'rejected', 'terminal_at', now_text, 'terminal_reason', refusal,
    'until_ms', retained_text)
  count('outcome rejected')
  enlist('rejected', user, scope, seq, ref)
  keep('rejected', ref, retained_text)
  return { 'rejected', shown(key) }
end
redis.call('HSET', key, 'phase', 'ready', 'ref', ref, 'scope_id', scope, 'fingerprint', fingerprint, 'admitted_at', now_text,
  'deadline_at', deadline, 'action', action, 'max_attempts', max_attempts, 'seq', seq)
if scope_shard ~= '' then redis.call('HSET', key, 'scope_shard', scope_shard) end
redis.call('SET', ended(D, 'payload', path), payload_text)
track(user, ref, deadline)
enlist('waiting', user, scope, seq, ref)
redis.call('ZADD', waiting, seq, id)
count('other admitted')
call(user, client, mailbox)
return deadline`,
)

// About one attempt by its number: late, it is about another one.
const OF_ATTEMPT = { freesMemory: true, anyTime: true }

/**
 * The next attempt of a mailbox, for the waiter of that token and by the number of its claim. Answers `missing` or
 * `replaced` for a waiter that is unknown, `empty`, `more` where another claim is to look again, or the command as one text.
 */
export const CLAIM = deliveryScript(
  'delivery.claim',
  { args: ['user', 'client', 'token', 'node', 'claim'], answer: readClaimed, ...OF_ATTEMPT },
  `
local wanted = tonumber(claim)
local key, waiting = ended(D, 'waiter', mailbox), ended(D, 'box', mailbox)
local waiter = redis.call('HMGET', key, 'token', 'instance', 'claim', 'claimed', 'attempt')
if waiter[1] ~= token then return waiter[1] and 'replaced' or 'missing' end
local function done() redis.call('ZREM', K(D, 'todo', incarnation), user .. '\\n' .. client) end
local function claimed(c, payload_text, until_ms)
  local behind = redis.call('ZCARD', waiting)
  if behind == 0 then done() end
  -- One text: the store looks at a table seven times, and at each of its values, before it answers it.
  return table.concat({ c.attempts, c.deadline_at, behind, until_ms, c.command_id, c.action, payload_text }, '\\0')
end
local function note(id, attempt) redis.call('HSET', key, 'claim', claim, 'claimed', id, 'attempt', attempt) end
local last = tonumber(waiter[3]) or 0
if wanted < last then return 'more' end
if wanted == last then
  -- The same claim again: its answer was lost.
  local c = waiter[4] and look(user, client, waiter[4], mailbox)
  local payload_text = c and c.phase == 'attempted' and c.attempts == waiter[5] and not c.last_outcome and redis.call('GET', payload(c))
  if not payload_text or not c.action then return 'more' end
  return claimed(c, payload_text, zcall('ZSCORE', 'wakes', c.ref) or '')
end
for _ = 1, ${CLAIM_LOOKS} do
  local id = redis.call('ZPOPMIN', waiting)[1]
  if not id then
    note('', '')
    done()
    return 'empty'
  end
  local c = look(user, client, id, mailbox)
  if c and c.phase == 'ready' then
    local payload_text = redis.pcall('GET', payload(c))
    if type(payload_text) == 'string' and c.action then
      local from = state_of(c)
      if c.attempts ~= '0' then redis.call('HDEL', c.key, 'last_outcome') end
      c.phase, c.attempts = 'attempted', text(c.attempts + 1)
      set(c, 'phase', 'attempted', 'attempts', c.attempts, 'last_at', now_text, 'last_node_id', node,
        'last_instance_id', waiter[2], 'incarnation', incarnation)
      relist(c, from)
      note(id, c.attempts)
      zcall('ZADD', 'wakes', patience_text, c.ref)
      return claimed(c, payload_text, patience_text)
    end
    finish(c, 'failed', 'payload_missing')
  end
end
note('', '')
return 'more'`,
)

/** What became of an attempt. */
export const CONCLUDE = deliveryScript(
  'delivery.conclude',
  { args: ['user', 'client', 'id', 'attempt', 'outcome'], answer: nothing, ...OF_ATTEMPT },
  `
local c = read(user, client, id, mailbox, path)
if not c or c.terminal or c.attempts ~= attempt or c.last_outcome then
  local isRepeated = c and c.attempts == attempt and c.last_outcome == outcome
  if not isRepeated then count('other late_outcome') end
  if c and c.terminal then renotify(c) end
  return 0
end
conclude(c, outcome)
if c.phase == 'attempted' then
  if outcome == 'handed_over' then zcall('ZADD', 'wakes', patience_text, c.ref) else recover(c, 'deliver_rejected') end
end
return 1`,
)
