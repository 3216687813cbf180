/**
 * Every move that a command can make in a shard, for the scripts of the dispatcher: each script is one move or a few.
 *
 * Of a shard, under `delivery:`
 * - `command:<user>:<client>:<command>`: a text, the evidence, as `format.ts` says; it outlives the command by its retention;
 * - `payload:<user>:<client>:<command>`: JSON, as long as the command is not terminal;
 * - `box:<user>:<client>`: ids of commands that are ready for an attempt, by their admission;
 * - `waiter:<user>:<client>`: a hash, the connection that waits, on which node, by which order, and its last claim;
 *   `left:<user>:<client>`: the order of the last one that left, for a minute;
 * - `deadlines`, `wakes` (attempted or in a pause, by when that is over), `ended` and `rejected` (by when they are
 *   forgotten): command references by an instant;
 * - `state:<state>`, `of-id:<user or scope>`: the same by their admission, as `script-lists.ts` says;
 * - `held`: a hash, tracked commands of each user; `reasons`: how many retained commands have ended, by the reason;
 * - `attached`, `attached-of:<user>`: mailboxes at which somebody waits, by the order of the attach;
 * - `scope:<scope>`: reservations by deadline; `scopes`: scopes by their first reservation. A scope lives in the shard
 *   of its own id, which need not be that of the user; then a reservation can be left behind, and `scope-until` says when
 *   the last of those is over, and `sharers:<scope>:<reference>` the dispatches that have such a place; `capacities`: a hash, what each scope with reservations was last held to;
 * - `incarnations`: running nodes by the end of their lease, `of:<incarnation>` the mailboxes that wait there by when that was last
 *   confirmed, `todo:<incarnation>` those of them that have something ready, `news:<incarnation>` what else it is to be notices,
 *   `wake-ups:<incarnation>` the channel that says that there is something.
 *
 * A command reference is `user \n client \n command`: ids hold no line break. An incarnation is one life of one node.
 */
import { NO_REASON, REASONS_MAX } from '../../contract/delivery.js'
import { RECORD_LUA } from './format.js'
import { DELIVERY_LISTS } from './script-lists.js'
import { DELIVERY_NOTICES } from './script-notices.js'
import { DELIVERY_PLACES } from './script-places.js'

// `incarnation` is the node that asks; what else a node gives stands in `node-script.ts`.
export const DELIVERY_MOVES = `
local D = 'delivery'
local retention, kept_max, patience = tonumber(retention_ms), tonumber(max_kept), tonumber(patience_ms)
-- number: that of the call at hand. freed: it has left the mailbox to the next command.
local counted, released, number, freed = {}, {}, 0, false

-- of: its kind and name.
local function count(of) counted[of] = (counted[of] or 0) + 1 end
-- A whole number as text. The store would make one itself, call by call, as of any number, and that is dearer than the call.
local function text(number) return string.format('%d', number) end
-- The instant in so many ms, which most calls of a run have in common.
local instants = {}
local function in_ms(ms)
  instants[ms] = instants[ms] or text(now + ms)
  return instants[ms]
end
local now_text, patience_text, retained_text = text(now), text(now + patience), text(now + retention)

-- By the name of what a shard has one of: its key.
local keys = {}
local function zcall(command, name, ...)
  keys[name] = keys[name] or KEYS[1] .. 'delivery:' .. name
  return redis.call(command, keys[name], ...)
end
${RECORD_LUA}${DELIVERY_LISTS}
${DELIVERY_NOTICES}

-- What not every move reckons with is not looked at before: junk in its place counts as none.
local function is_whole(text) return string.find(text, '^%d+$') end
local function count_of(value) return tonumber(value) or 0 end

-- What the store answered for the record of a command, false or nil for none: nil where there is none; then whether something
-- else stands in its place.
local function record_of(reply, user, client, id, mailbox, path)
  if not reply then return nil, false end
  local c = { user, client, id, mailbox, path, pcall(struct.unpack, RECORD, reply) }
  -- Anything else was not written by us; reckoning with it would end the pass over the whole shard.
  local good = c.good and is_whole(c.deadline_at) and is_whole(c.attempts) and is_whole(c.seq)
    and c.ref == user .. '\\n' .. client .. '\\n' .. id
  if good and c.terminal ~= '' then good = is_whole(c.until_ms) else good = good and c.scope_id ~= '' end
  if not good then return nil, true end
  return c
end

local function key_of(c) return ended(D, 'command', c.path) end

-- mailbox and path are what the keys of a command end in, where that is known.
local function read(user, client, id, mailbox, path)
  mailbox = mailbox or ids(user, client)
  path = path or mailbox .. ':' .. encode(id)
  return record_of(redis.pcall('GET', ended(D, 'command', path)), user, client, id, mailbox, path)
end

local function save(c)
  raise(D)
  redis.call('SET', key_of(c), text_of(c))
end

local function of_ref(ref) return string.match(ref, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)$') end

local function box(c) return ended(D, 'box', c.mailbox) end
local function payload(c) return ended(D, 'payload', c.path) end

${DELIVERY_PLACES}
-- By the reasons of ends: how many more records have them than before.
local reasons = {}
local function count_reason(over, step)
  local why = string.match(over, '\\n(.+)$') or '${NO_REASON}'
  reasons[why] = (reasons[why] or 0) + step
end

-- A name beyond the bound is counted as \`other\`, and taken off there again when its own name is gone. A value of another
-- type in this place must not fail what has ended.
local function write_reasons()
  local key = KEYS[1] .. 'delivery:reasons'
  local function add(reason, step)
    local count = tonumber(redis.pcall('ZINCRBY', key, text(step), reason))
    if not count then return end
    if count <= 0 then redis.call('ZREM', key, reason) end
    if reason == 'other' then return end
    local rest = 0
    if count < 0 then rest = count
    elseif step > 0 and count == step and redis.call('ZCARD', key) > ${REASONS_MAX} then
      redis.call('ZREM', key, reason)
      rest = step
    end
    if rest ~= 0 then add('other', rest) end
  end
  for reason, step in pairs(reasons) do if step ~= 0 then add(reason, step) end end
end

local function forget(kind, ref)
  local user, client, id = of_ref(ref)
  leave_list(kind, ref)
  if not user then return end
  local key = K(D, 'command', user, client, id)
  local was = unlist(user, ref, key)
  if was and was.terminal ~= '' then count_reason(was.over, -1) end
  redis.call('DEL', key)
end

-- Keeps the record of what is over, as long as the retention allows, and their number: the oldest go when all are written.
local kept = {}
local function keep(kind, ref, until_ms)
  list(kind, until_ms, ref)
  kept[kind] = (kept[kind] or 0) + 1
end

local function forget_oldest(kind)
  local over = zcall('ZCARD', kind) - kept_max
  -- Where the bound was lowered, so many a run that it is reached in time.
  local most = math.min(over, 2 * kept[kind])
  if most > 0 then for _, ref in ipairs(zcall('ZRANGE', kind, 0, most - 1)) do forget(kind, ref) end end
end

-- What the calls of a run have left to its end.
local doomed = {}
local function write_all()
  for kind in pairs(kept) do
    written(kind)
    -- A foreign value in the place of what is kept: what was to be put there has failed by it.
    pcall(forget_oldest, kind)
  end
  while true do
    local name = next(gathered)
    if not name then break end
    written(name)
  end
  write_reasons()
  if #doomed > 0 then in_slices('DEL', doomed[1], doomed) end
end

-- The end, once more for whoever has not heard of it; what is released twice is released.
local function renotify(c)
  notify(c.incarnation, c.terminal .. '\\n' .. c.ref)
  if c.scope_shard ~= '' then released[#released + 1] = { number, c.scope_shard, c.scope_id, c.ref } end
end

-- Out of its mailbox, or of what has a time to wait for.
local function unwait(c)
  if c.phase == 'ready' then
    -- In place of its mailbox may stand what nobody of ours wrote: the command ends all the same.
    redis.pcall('ZREM', box(c), c.command_id)
  elseif c.phase ~= 'acknowledged' then
    leave_list('wakes', c.ref)
  end
end

-- Brings a tracked command to its one terminal state: out of every index, its reservation and payload released. by: the
-- attempt of the call that ended it, if it was one.
local function finish(c, state, reason, at, by)
  -- First: what a full store refuses to end must still be tracked.
  raise(D)
  local from = state_of(c)
  untrack(c.user_id, c.ref)
  unwait(c)
  doomed[#doomed + 1] = payload(c)
  c.phase, c.terminal, c.until_ms = 'ended', state, retained_text
  c.over, c.ended_by = (at or now_text) .. '\\n' .. reason, by or ''
  save(c)
  count_reason(c.over, 1)
  relist(c, from)
  if c.scope_shard == '' then release(c.scope_id, c.ref) end
  count('outcome ' .. state)
  local acknowledged = string.match(c.acknowledged, '^[^\\n]*\\n([^\\n]*)') or ''
  count('took ' .. c.admitted_at .. ' ' .. c.handed_over_at .. ' ' .. acknowledged .. ' ' .. (at or now_text))
  renotify(c)
  keep('ended', c.ref, c.until_ms)
end

-- The command as it is now: one that is past its deadline is brought to its end first. Without one, whether its key
-- is taken all the same.
local function looked_at(c, isTaken)
  if not c then return nil, isTaken end
  if c.terminal ~= '' then
    if tonumber(c.until_ms) <= now then return nil, true end
    return c
  end
  if tonumber(c.deadline_at) <= now then finish(c, 'expired', 'deadline_passed', c.deadline_at) end
  return c
end
local function look(user, client, id, mailbox, path)
  -- A reference that cannot be read.
  if not id then return nil, false end
  return looked_at(read(user, client, id, mailbox, path))
end

-- Whoever calls it saves the record, and counts the outcome then. why: that it led to nothing; ago: in ms, if it was
-- not now.
local function conclude(c, outcome, why, ago)
  local at, since = now_text, tonumber(ago)
  if since and since > 0 then at = text(math.max(now - since, tonumber(string.match(c.attempted, '^%d+')) or 0)) end
  c.last_outcome, c.concluded = outcome, at .. '\\n' .. (why or '')
  if outcome ~= 'handed_over' then return end
  c.confirmed = text(count_of(c.confirmed) + 1)
  if c.handed_over_at == '' then c.handed_over_at = at end
end
`
