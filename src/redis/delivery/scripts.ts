/** The scripts of the dispatcher for admission and attempts, one atomic step each. */
import { ignoreReply, listOf, parseFlag } from '../store/reply.js'
import { recordText } from './format.js'
import { deliveryScript } from './node-script.js'
import { DELIVERY_CLAIMS, readClaim } from './script-claims.js'
import { DELIVERY_RECOVERY } from './script-recovery.js'

/**
 * In the shard of the scope, where that is another than the command's. `ttl` is the time to the deadline, `attempt` names the
 * dispatch: several of one command share its place, and the first may be refused when another one is admitted by it.
 */
export const RESERVE = deliveryScript(
  'delivery.reserve',
  { args: ['scope', 'ref', 'ttl', 'capacity', 'news', 'attempt'], answer: parseFlag },
  `
local deadline = in_ms(ttl)
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
  { args: ['scope', 'ref', 'attempt'], answer: ignoreReply, freesMemory: true },
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
return c and text_of(c) or 0`,
)

const ADMISSIONS = `
-- Of the call at hand, for its command: the calls of a run take theirs together.
local before
local function next_number()
  if not before then
    -- No less than the clock of the store: numbers of several shards are compared.
    before = math.max(tonumber(zcall('GET', 'seq')) or 0, time[1] * 1000000 + time[2])
    zcall('SET', 'seq', string.format('%.0f', before + #given))
  end
  return string.format('%.0f', before + number)
end

-- Whether anybody waits for the client at a node that lives, or that instance if one is given.
local function waited_for(mailbox, instance)
  local waiter = redis.call('HMGET', ended(D, 'waiter', mailbox), 'incarnation', 'instance')
  if not waiter[1] or (instance and waiter[2] ~= instance) then return false end
  local lease = zcall('ZSCORE', 'incarnations', waiter[1])
  return waiter[1] == incarnation or (lease and tonumber(lease) > now)
end
`

const ADMITTED = {
  ref: 'ref',
  seq: 'seq',
  deadline_at: 'deadline',
  scope_id: 'scope',
  attempts: "'0'",
  action: 'action',
  fingerprint: 'fingerprint',
  admitted_at: 'now_text',
}
const READY = recordText({
  ...ADMITTED,
  phase: "'ready'",
  scope_shard: 'scope_shard',
  max_attempts: 'max_attempts',
})
const REJECTED = recordText({
  ...ADMITTED,
  phase: "'ended'",
  terminal: "'rejected'",
  until_ms: 'retained_text',
  over: "now_text .. '\\n' .. refusal",
})

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
    claims: true,
    parts: [ADMISSIONS],
  },
  `
-- A claim comes only for a client that can take another command now.
freed = true
local key, waiting = ended(D, 'command', path), ended(D, 'box', mailbox)
local known, isTaken = look(user, client, id, mailbox, path)
if known and known.terminal ~= 'rejected' then
  local same = known.fingerprint == fingerprint
  count(same and 'other dispatch_repeated' or 'other dispatch_conflict')
  if known.phase == 'ready' then
    -- A claim may have failed half-way, with the command in its hand.
    if not redis.call('ZSCORE', waiting, id) then redis.call('ZADD', waiting, known.seq, id) end
    -- The first admission's word to the node may have been lost.
    call(user, client, mailbox)
  end
  return { same and 'known' or 'conflict', text_of(known) }
end

local ref = user .. '\\n' .. client .. '\\n' .. id
local deadline = in_ms(ttl)
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
  local was = unlist(user, ref, key)
  if was and was.terminal ~= '' then count_reason(was.over, -1) end
  redis.call('DEL', key)
  leave_list('rejected', ref)
  leave_list('ended', ref)
end
local seq = next_number()
raise(D)
if refusal ~= '' then
  local record = ${REJECTED}
  redis.call('SET', key, record)
  count('outcome rejected')
  count_reason('\\n' .. refusal, 1)
  enlist('rejected', user, scope, seq, ref)
  keep('rejected', ref, retained_text)
  return { 'rejected', record }
end
redis.call('MSET', key, ${READY}, ended(D, 'payload', path), payload_text)
track(user, ref, deadline)
enlist('waiting', user, scope, seq, ref)
redis.call('ZADD', waiting, seq, id)
count('other admitted')
call(user, client, mailbox)
return deadline`,
)

// About one attempt by its number: late, it is about another one.
const OF_ATTEMPT = { freesMemory: true, anyTime: true }

/** The next attempt of a mailbox, for the waiter of that token and by the number of its claim. */
export const CLAIM = deliveryScript(
  'delivery.claim',
  { args: ['user', 'client', 'token', 'claim'], answer: readClaim, ...OF_ATTEMPT, parts: [DELIVERY_CLAIMS] },
  `
return claim_next(user, client, mailbox, token, claim)`,
)

/** What became of an attempt, `ago` ms before: what was before the end of the command is recorded behind it, too. */
export const CONCLUDE = deliveryScript(
  'delivery.conclude',
  {
    args: ['user', 'client', 'id', 'attempt', 'outcome', 'ago'],
    answer: ignoreReply,
    ...OF_ATTEMPT,
    claims: true,
    parts: [DELIVERY_RECOVERY],
  },
  `
local c = read(user, client, id, mailbox, path)
if not c or c.terminal ~= '' or c.attempts ~= attempt or c.last_outcome ~= '' then
  local isRepeated = c and c.attempts == attempt and c.last_outcome == outcome
  local isOpen = c and c.terminal ~= '' and c.attempts == attempt and c.last_outcome == ''
  if isOpen and outcome == 'handed_over' and now - tonumber(ago) < count_of(string.match(c.over, '^%d+')) then
    conclude(c, outcome, nil, ago)
    save(c)
    count('other attempt_handed_over')
  elseif not isRepeated then
    count('other late_outcome')
  end
  if c and c.terminal ~= '' then renotify(c) end
  return 0
end
freed = true
conclude(c, outcome, outcome ~= 'handed_over' and 'deliver_rejected' or nil, ago)
if c.phase == 'attempted' and outcome ~= 'handed_over' then
  recover(c, 'deliver_rejected')
else
  save(c)
  if c.phase == 'attempted' then list('wakes', patience_text, c.ref) end
end
count('other attempt_' .. outcome)
return 1`,
)
