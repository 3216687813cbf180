/** The scripts of the dispatcher: admission, attempts, acknowledgement and the end of a command, one atomic step each. */
import { defineScript } from '../script.js'
import { DELIVERY_MOVES } from './delivery-moves.js'

/** Entries at the head of a mailbox that one claim looks at: expired ones that the loop has not reached. */
const CLAIM_LOOKS = 16

const deliveryScript = (body: string) => defineScript(`${DELIVERY_MOVES}${body}`)

/** In the shard of the scope, where that is another than the command's. ARGV: 6 scope, 7 reference, 8 ms to the deadline, 9 capacity. */
export const RESERVE = deliveryScript(`
local deadline = now + ARGV[8]
if not reserve(ARGV[6], ARGV[7], deadline, tonumber(ARGV[9])) then return reply(0) end
zcall('ZADD', 'scope-until', 'GT', deadline, ARGV[6])
return reply(1)`)

/** ARGV: 6 scope, 7 reference. */
export const RELEASE = deliveryScript(`
release(ARGV[6], ARGV[7])
return reply(1)`)

/** ARGV: 6 user, 7 client, 8 command. Answers the record, or nothing where none is retained. */
export const LOOK = deliveryScript(`
local c = look(ARGV[6], ARGV[7], ARGV[8])
return reply(c and shown(c) or 0)`)

/**
 * ARGV: 6 user, 7 client, 8 command, 9 action, 10 scope, 11 its shard where that is another, 12 capacity, 13 ms to the
 * deadline, 14 most attempts, 15 fingerprint, 16 payload, 17 which waiter it needs ('', any, current), 18 the current
 * instance, 19 most tracked commands, 20 why it is refused already. Answers what became of it, and the record, or
 * of a new one its deadline.
 */
export const ADMIT = deliveryScript(`
local user, client, id, scope, scope_shard = ARGV[6], ARGV[7], ARGV[8], ARGV[10], ARGV[11]
local known, isTaken = look(user, client, id)
if known and known.terminal ~= 'rejected' then
  local same = known.fingerprint == ARGV[15]
  count('other', same and 'dispatch_repeated' or 'dispatch_conflict')
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
elseif ARGV[20] ~= '' then
  refusal = ARGV[20]
elseif zcall('ZCARD', 'deadlines') >= tonumber(ARGV[19]) then
  refusal = 'overloaded'
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
zcall('ZADD', 'deadlines', deadline, ref)
zcall('ZADD', 'queued', now, ref)
redis.call('ZADD', box(c), seq, id)
count('other', 'admitted')
call(user, client)
return reply({ 'admitted', deadline })`)

/**
 * The next attempt of a mailbox. ARGV: 6 user, 7 client, 8 the waiter's token, 9 node. Answers `missing` or `replaced`
 * for a waiter that is none, `empty`, `more`, or the command and how many wait behind it.
 */
export const CLAIM = deliveryScript(`
local user, client = ARGV[6], ARGV[7]
local mailbox = ids(user, client)
local waiter = redis.call('HMGET', ended(D, 'waiter', mailbox), 'token', 'instance')
if waiter[1] ~= ARGV[8] then return reply({ waiter[1] and 'replaced' or 'missing' }) end
local waiting = ended(D, 'box', mailbox)
for _ = 1, ${CLAIM_LOOKS} do
  local id = redis.call('ZRANGE', waiting, 0, 0)[1]
  if not id then return reply({ 'empty' }) end
  local c = look(user, client, id)
  redis.call('ZREM', waiting, id)
  if c and c.phase == 'ready' then
    local text = redis.call('GET', payload(c))
    if text then
      redis.call('HDEL', c.key, 'last_outcome')
      set(c, 'phase', 'attempted', 'attempts', c.attempts + 1, 'last_at', now, 'last_node_id', ARGV[9],
        'last_instance_id', waiter[2], 'boot', boot)
      zcall('ZADD', 'wakes', now + patience, c.ref)
      return reply({ 'command', id, c.action, text, c.attempts, c.deadline_at, redis.call('ZCARD', waiting) })
    end
    finish(c, 'failed', 'payload_missing')
  end
end
return reply({ 'more' })`)

/** What became of an attempt. ARGV: 6 user, 7 client, 8 command, 9 attempt, 10 outcome. */
export const CONCLUDE = deliveryScript(`
local c = read(ARGV[6], ARGV[7], ARGV[8])
if not c or c.terminal or c.attempts ~= ARGV[9] or c.last_outcome then
  count('other', 'late_outcome')
  return reply(0)
end
conclude(c, ARGV[10])
if c.phase == 'attempted' then
  if ARGV[10] == 'handed_over' then zcall('ZADD', 'wakes', now + patience, c.ref) else recover(c, 'deliver_rejected') end
end
return reply(1)`)

/** ARGV: 6 user, 7 client, 8 command, 9 state, 10 reason, 11 instance, 12 whether a registry was asked, 13 its answer. */
export const ACKNOWLEDGE = deliveryScript(`
local c = look(ARGV[6], ARGV[7], ARGV[8])
local refusal = (not c or c.terminal) and 'late' or fenced(c, ARGV[11], ARGV[12], ARGV[13]) and 'fenced'
if refusal then
  count('acknowledgement', refusal)
  return reply(0)
end
if c.acknowledged then
  count('acknowledgement', 'repeated')
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
export const END = deliveryScript(`
local c = look(ARGV[6], ARGV[7], ARGV[8])
if not c or c.terminal then return reply(0) end
if ARGV[11] ~= '' and fenced(c, ARGV[11], ARGV[12], ARGV[13]) then
  count('other', 'settle_fenced')
  return reply(0)
end
finish(c, ARGV[9], ARGV[10])
return reply(1)`)
