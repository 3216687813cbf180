/** The scripts of the dispatcher for what a client or a host says of a command: its acknowledgement and its end. */
import { parseFlag } from '../store/reply.js'
import { deliveryScript } from './node-script.js'

const ENDS = `
-- A call that arrives again, because its reply was lost, hears that it was this one that ended the command.
local function was_ended_by(c, attempt) return c and c.terminal ~= '' and c.ended_by == attempt end

-- Whether this was news. Whoever calls it saves the record, and counts the outcome then.
local function note_hand_over(c, handed_over, ago)
  local isNews = c.attempts == handed_over and c.last_outcome == ''
  if isNews then conclude(c, 'handed_over', nil, ago) end
  return isNews
end

-- Whether the instance does not speak for the client: by the registry, which the caller asked, or the one attached or
-- last attempted.
local function fenced(c, instance, asked, current)
  if asked ~= '' then return current ~= instance end
  local attached = redis.call('HGET', ended(D, 'waiter', c.mailbox), 'instance')
  return (attached or string.match(c.attempted, '^[^\\n]*\\n([^\\n]*)')) ~= instance
end
`

// Where a registry was asked (1, else ''), `current` is the instance that it named. `handed_over` is the attempt that was, `ago` ms
// before, of which the store has not been told, or ''. `attempt` names the call.
const END_ARGS = [
  ...(['user', 'client', 'id', 'state', 'reason', 'instance', 'was_asked', 'current'] as const),
  ...(['handed_over', 'ago', 'attempt'] as const),
] as const

export const ACKNOWLEDGE = deliveryScript(
  'delivery.acknowledge',
  { args: END_ARGS, answer: parseFlag, freesMemory: true, claims: true, parts: [ENDS] },
  `
local c = look(user, client, id, mailbox, path)
if was_ended_by(c, attempt) then
  freed = true
  renotify(c)
  return 1
end
local refusal = (not c or c.terminal ~= '') and 'late' or fenced(c, instance, was_asked, current) and 'fenced'
if refusal then
  count('acknowledgement ' .. refusal)
  if c and c.terminal ~= '' then renotify(c) end
  return 0
end
freed = true
local isNews = note_hand_over(c, handed_over, ago)
if c.phase == 'acknowledged' then
  if isNews then save(c) end
  count('acknowledgement repeated')
  notify(c.incarnation, 'acknowledged\\n' .. c.ref)
else
  local from = state_of(c)
  unwait(c)
  c.phase, c.acknowledged = 'acknowledged', state .. '\\n' .. now_text .. '\\n' .. instance
  save(c)
  relist(c, from)
  count('acknowledgement ' .. state)
  notify(c.incarnation, 'acknowledged\\n' .. c.ref)
end
if isNews then count('other attempt_handed_over') end
if state == 'refused' then finish(c, 'failed', reason, nil, attempt) end
return 1`,
)

/** `instance` may be ''. `acknowledges` (1, else '') says that it has taken the command, too. */
export const END = deliveryScript(
  'delivery.end',
  { args: [...END_ARGS, 'acknowledges'], answer: parseFlag, freesMemory: true, claims: true, parts: [ENDS] },
  `
local c = look(user, client, id, mailbox, path)
if not c then return 0 end
if c.terminal ~= '' then
  freed = true
  renotify(c)
  return was_ended_by(c, attempt) and 1 or 0
end
if instance ~= '' and fenced(c, instance, was_asked, current) then
  count('other settle_fenced')
  return 0
end
freed = true
local isNews = note_hand_over(c, handed_over, ago)
local isTaken = acknowledges ~= '' and c.phase ~= 'acknowledged'
if isTaken then c.acknowledged = 'acknowledged\\n' .. now_text .. '\\n' .. instance end
finish(c, state, reason, nil, attempt)
if isNews then count('other attempt_handed_over') end
if isTaken then count('acknowledgement acknowledged') end
return 1`,
)
