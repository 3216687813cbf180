/** The scripts of the dispatcher: admission, attempts, acknowledgement and the end of a command, one atomic step each. */
import { defineBare } from '../store/script.js'
import { DELIVERY_MOVES } from './script-moves.js'

/** Entries at the head of a mailbox that one claim looks at: expired ones that the loop has not reached. */
const CLAIM_LOOKS = 16

const deliveryScript = (body: string) => defineBare(`${DELIVERY_MOVES}${body}`)
const freeing = (body: string) => defineBare(`${DELIVERY_MOVES}${body}`, { freesMemory: true })
/** About one attempt by its number: late, it is about another one. */
const ofAttempt = (body: string) => defineBare(`${DELIVERY_MOVES}${body}`, { freesMemory: true, anyTime: true })

/** In the shard of the scope, where that is another than the command's. ARGV: 6 scope, 7 reference, 8 ms to the deadline, 9 capacity. */
export const RESERVE = deliveryScript(`
local deadline = now + ARGV[8]
if not reserve(ARGV[6], ARGV[7], deadline, tonumber(ARGV[9])) then return reply(0) end
zcall('ZADD', 'scope-until', 'GT', deadline, ARGV[6])
return reply(1)`)

/** ARGV: 6 scope, 7 reference. */
export const RELEASE = freeing(`
release(ARGV[6], ARGV[7])
return reply(1)`)

/** ARGV: 6 user, 7 client, 8 command. Answers the record, or nothing where none is retained. */
export const LOOK = deliveryScript(`
local c = look(ARGV[6], ARGV[7], ARGV[8])
return reply(c and shown(c) or 0)`)

/**
 * ARGV: 6 user, 7 client, 8 command, 9 action, 10 scope, 11 its shard where that is another, 12 capacity, 13 ms to the
 * deadline, 14 most attempts, 15 fingerprint, 16 payload, 17 which waiter it needs ('', any, current), 18 the current
 * instance, 19 most tracked commands, 20 and of one user, 21 why it is refused already. Answers what became of it, and the record, or
 * of a new one its deadline.
 */
export const ADMIT = deliveryScript(`
local user, client, id, scope, scope_shard = ARGV[6], ARGV[7], ARGV[8], ARGV[10], ARGV[11]
local known, isTaken = look(user, client, id)
if known and known.terminal ~= 'rejected' then
  local same = known.fingerprint == ARGV[15]
  count('other', same and 'dispatch_repeated' or 'dispatch_conflict')
  -- The first admission's word to the node may have been lost.
  if known.phase == 'ready' then call(user, client) end
  return reply({ same and 'known' or 'conflict', shown(known) })
end

local function waited_for()
  local waiter = redis.call('HMGET', ended(D, 'waiter', ids(user, client)), 'boot', 'instance')
  if not waiter[1] or (ARGV[17] == 'current' and waiter[2] ~= ARGV[18]) then return false end
  local lease = zcall('ZSCORE', 'boots', waiter[1])
  return waiter[1] == boot or (lease and tonumber(lease) > now)
end

local c = named(user, client, id)
local ref = c.ref
local deadline = now + ARGV[13]
local refusal = ''
if ARGV[17] ~= '' and not waited_for() then
  refusal = 'no_waiter'
elseif ARGV[21] ~= '' then
  refusal = ARGV[21]
elseif zcall('ZCARD', 'deadlines') >= tonumber(ARGV[19]) then
  refusal = 'overloaded'
elseif (tonumber(zcall('HGET', 'held', user)) or 0) >= tonumber(ARGV[20]) then
  refusal = 'capacity_exceeded'
elseif scope_shard == '' and not reserve(scope, ref, deadline, tonumber(ARGV[12])) then
  refusal = 'capacity_exceeded'
end

if known or isTaken then
  redis.call('DEL', c.key)
  zcall('ZREM', 'rejected', ref)
  zcall('ZREM', 'ended', ref)
end
if refusal ~= '' then
  set(c, 'user_id', user, 'client_id', client, 'command_id', id, 'scope_id', scope, 'fingerprint', ARGV[15],
    'admitted_at', now, 'deadline_at', deadline, 'attempts', 0, 'confirmed', 0, 'recoveries', 0, 'phase', 'ended', 'terminal', 'rejected', 'terminal_at', now, 'terminal_reason', refusal,
    'until_ms', now + retention)
  count('outcome', 'rejected')
  keep('rejected', c)
  return reply({ 'rejected', shown(c) })
end
local seq = redis.call('INCR', KEYS[1] .. 'delivery:seq')
redis.call('HSET', c.key, 'user_id', user, 'client_id', client, 'command_id', id, 'scope_id', scope,
  'fingerprint', ARGV[15], 'admitted_at', now, 'deadline_at', deadline, 'attempts', 0, 'confirmed', 0, 'recoveries', 0,
  'action', ARGV[9], 'max_attempts', ARGV[14], 'seq', seq, 'phase', 'ready')
if scope_shard ~= '' then redis.call('HSET', c.key, 'scope_shard', scope_shard) end
redis.call('SET', payload(c), ARGV[16])
if zcall('ZADD', 'deadlines', deadline, ref) == 1 then zcall('HINCRBY', 'held', user, 1) end
zcall('ZADD', 'queued', now, ref)
redis.call('ZADD', box(c), seq, id)
count('other', 'admitted')
call(user, client)
return reply({ 'admitted', deadline })`)

/**
 * The next attempt of a mailbox. ARGV: 6 user, 7 client, 8 the waiter's token, 9 node, 10 the number of the claim. Answers
 * `missing` or `replaced` for a waiter that is none, `empty`, `more` where another claim is to look again, or the
 * command, how many wait behind it, and until when the attempt has patience.
 */
export const CLAIM = ofAttempt(`
local user, client, number = ARGV[6], ARGV[7], tonumber(ARGV[10])
local mailbox = ids(user, client)
local key, waiting = ended(D, 'waiter', mailbox), ended(D, 'box', mailbox)
local waiter = redis.call('HMGET', key, 'token', 'instance', 'claim', 'claimed', 'attempt')
if waiter[1] ~= ARGV[8] then return reply({ waiter[1] and 'replaced' or 'missing' }) end
local function claimed(c, text, until_ms)
  return reply({ 'command', c.command_id, c.action, text, c.attempts, c.deadline_at, redis.call('ZCARD', waiting), until_ms })
end
local last = tonumber(waiter[3]) or 0
if number < last then return reply({ 'more' }) end
if number == last then
  -- The same claim again: its answer was lost.
  local c = waiter[4] and look(user, client, waiter[4])
  local text = c and c.phase == 'attempted' and c.attempts == waiter[5] and not c.last_outcome and redis.call('GET', payload(c))
  if not text then return reply({ 'more' }) end
  return claimed(c, text, zcall('ZSCORE', 'wakes', c.ref))
end
redis.call('HSET', key, 'claim', ARGV[10], 'claimed', '', 'attempt', '')
for _ = 1, ${CLAIM_LOOKS} do
  local id = redis.call('ZRANGE', waiting, 0, 0)[1]
  if not id then
    redis.call('ZREM', K(D, 'todo', boot), user .. '\\n' .. client)
    return reply({ 'empty' })
  end
  local c = look(user, client, id)
  redis.call('ZREM', waiting, id)
  if c and c.phase == 'ready' then
    local text = redis.call('GET', payload(c))
    if text then
      redis.call('HDEL', c.key, 'last_outcome')
      set(c, 'phase', 'attempted', 'attempts', c.attempts + 1, 'last_at', now, 'last_node_id', ARGV[9],
        'last_instance_id', waiter[2], 'boot', boot)
      redis.call('HSET', key, 'claimed', id, 'attempt', c.attempts)
      zcall('ZADD', 'wakes', now + patience, c.ref)
      if redis.call('EXISTS', waiting) == 0 then redis.call('ZREM', K(D, 'todo', boot), user .. '\\n' .. client) end
      return claimed(c, text, now + patience)
    end
    finish(c, 'failed', 'payload_missing')
  end
end
return reply({ 'more' })`)

/** What became of an attempt. ARGV: 6 user, 7 client, 8 command, 9 attempt, 10 outcome. */
export const CONCLUDE = ofAttempt(`
local c = read(ARGV[6], ARGV[7], ARGV[8])
if not c or c.terminal or c.attempts ~= ARGV[9] or c.last_outcome then
  local isRepeated = c and c.attempts == ARGV[9] and c.last_outcome == ARGV[10]
  if not isRepeated then count('other', 'late_outcome') end
  if c and c.terminal then retell(c) end
  return reply(0)
end
conclude(c, ARGV[10])
if c.phase == 'attempted' then
  if ARGV[10] == 'handed_over' then zcall('ZADD', 'wakes', now + patience, c.ref) else recover(c, 'deliver_rejected') end
end
return reply(1)`)

/** ARGV: 6 user, 7 client, 8 command, 9 state, 10 reason, 11 instance, 12 whether a registry was asked, 13 its answer. */
export const ACKNOWLEDGE = freeing(`
local c = look(ARGV[6], ARGV[7], ARGV[8])
local refusal = (not c or c.terminal) and 'late' or fenced(c, ARGV[11], ARGV[12], ARGV[13]) and 'fenced'
if refusal then
  count('acknowledgement', refusal)
  if c and c.terminal then retell(c) end
  return reply(0)
end
if c.acknowledged then
  count('acknowledgement', 'repeated')
  tell(c.boot, 'acknowledged\\n' .. c.ref)
else
  set(c, 'phase', 'acknowledged', 'acknowledged', ARGV[9], 'acknowledged_at', now, 'acknowledged_by', ARGV[11])
  zcall('ZREM', 'queued', c.ref)
  zcall('ZREM', 'wakes', c.ref)
  redis.call('ZREM', box(c), c.command_id)
  count('acknowledgement', ARGV[9])
  tell(c.boot, 'acknowledged\\n' .. c.ref)
end
if ARGV[9] == 'refused' then finish(c, 'failed', ARGV[10]) end
return reply(1)`)

/** ARGV: 6 user, 7 client, 8 command, 9 state, 10 reason, 11 instance or '', 12 whether a registry was asked, 13 its answer. */
export const END = freeing(`
local c = look(ARGV[6], ARGV[7], ARGV[8])
if not c then return reply(0) end
if c.terminal then
  retell(c)
  return reply(0)
end
if ARGV[11] ~= '' and fenced(c, ARGV[11], ARGV[12], ARGV[13]) then
  count('other', 'settle_fenced')
  return reply(0)
end
finish(c, ARGV[9], ARGV[10])
return reply(1)`)
