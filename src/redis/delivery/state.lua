-- Inputs: keys and limits. Outputs: functions that read and change commands in memory. Publishes nothing: `tell` queues messages.
-- The state of a run: what it has read and changed so far. A run is one call of the store with several steps.
-- docs/delivery-design.md lists the keys. A run is atomic, so cached values stay valid until its end, where counters, waiters
-- and messages are written once each.

-- As locals: the store looks up a global in two tables.
local next, pairs, ipairs, pcall, tonumber, unpack = next, pairs, ipairs, pcall, tonumber, unpack
local floor, min, max = math.floor, math.min, math.max
local sub, find, match, gmatch, fmt, concat = string.sub, string.find, string.match, string.gmatch, string.format, table.concat
local sunpack, call = struct.unpack, redis.call
--@include ../store/lease.lua

-- States of open commands. Waiting: w. Attempted: a (given to a node), h (`deliver` resolved), p (paused before a retry),
-- q (waiting for another attempt). Acknowledged: k.
local OPEN = { w = true, a = true, h = true, p = true, q = true, k = true }
local STATES = {
  w = 'waiting', a = 'attempted', h = 'attempted', p = 'attempted', q = 'attempted', k = 'acknowledged',
  r = 'resulted', f = 'failed', x = 'expired', c = 'cancelled', j = 'rejected',
}

-- Names of the keys of a shard. Those that end in `_of` are prefixes.
local K = {}
local function name_keys(P)
  if K.prefix == P then return end
  K.prefix = P
  K.attached = P .. 'attached'
  K.attached_of = P .. 'attached-of:'
  K.queue_of = P .. 'queue:'
  K.capacities = P .. 'capacities'
  K.chunks = P .. 'chunks'
  K.command_of = P .. 'command:'
  K.counts = P .. 'counts'
  K.due = P .. 'due'
  K.due_of = P .. 'due:'
  K.ended = P .. 'ended'
  K.expiring = P .. 'expiring'
  K.expiring_of = P .. 'expiring:'
  K.first_chunk = P .. 'first-chunk'
  K.first_open = P .. 'first-open'
  K.held = P .. 'held'
  K.inbox_of = P .. 'inbox:'
  K.kept_at = P .. 'kept-at'
  K.leases = P .. 'leases'
  K.detached_of = P .. 'detached:'
  K.log_of = P .. 'log:'
  K.of_of = P .. 'of:'
  K.order = P .. 'order'
  K.reasons = P .. 'reasons'
  K.reserved_of = P .. 'reserved:'
  K.scope_order = P .. 'scope-order'
  K.scope_seq = P .. 'scope-seq'
  K.scopes = P .. 'scopes'
  K.seq = P .. 'seq'
  K.starts = P .. 'starts'
  K.states_of = P .. 'states:'
  K.backlogged = P .. 'backlogged'
  K.sweeps = P .. 'sweeps'
  K.last_message = P .. 'last-message'
  K.waiters = P .. 'waiters'
  K.wake_of = P .. 'wake:'
end

-- The run: its time in ms, the calling incarnation and its node, and the limits.
local now, now_text, me, node
local retention, retention_step, kept_max, tracked_max, held_max
-- Caches: state columns by chunk, waiters by mailbox, leases by incarnation.
local columns, waiters, leases
-- Admissions of this run. `last` is the number before the first of them, `added` is how many; the tables are lists to append.
local last, last_stamp, added, refs, states, lists, due, mail, deadlines
-- Changes of counters by name, and cached values.
local counts, reasons, expiring, scopes, scope_now, new_scopes, held, held_now, tracked
-- Mailboxes in which a slot may have become free, and mailboxes whose waiter must be saved.
local touched, dirty
-- Messages to other incarnations, messages to the calling one, reservations to release in other shards, and event counts.
local messages, own, by_message, released, counted
local now_micros, open_numbers
-- References of the commands that this run ends.
local ended_refs
local number, ended, rejected, has_expired, has_own_messages, failure

local function begin_run()
  columns, waiters, leases = {}, {}, {}
  last, last_stamp, added, refs, states, lists, due, mail, deadlines = nil, nil, 0, {}, {}, {}, {}, {}, {}
  counts, reasons, expiring, scopes, scope_now, new_scopes, held, held_now, tracked = {}, {}, {}, {}, {}, {}, {}, {}, nil
  touched, dirty = {}, {}
  messages, own, by_message, released, counted = {}, {}, false, {}, {}
  ended_refs = {}
  number, ended, rejected, has_expired, failure = 0, 0, 0, false, ''
end

local function text(n) return fmt('%d', n) end
local function add(to, name, by) to[name] = (to[name] or 0) + by end
local function append(to, name, value)
  local list = to[name]
  if not list then
    to[name] = { value }
  else
    list[#list + 1] = value
  end
end
local function count(name) counted[name] = (counted[name] or 0) + 1 end

-- Commands are numbered from 1. A chunk has the references and states of {{CHUNK}} commands.
local function chunk_of(seq) return floor((seq - 1) / {{CHUNK}}) end
local function offset_of(seq, k) return seq - 1 - k * {{CHUNK}} end

local function column(k)
  local known = columns[k]
  if not known then
    known = call('GET', K.states_of .. text(k)) or ''
    columns[k] = known
  end
  return known
end

local function state_at(seq)
  if last and seq > last then return states[seq - last] or '' end
  local k = chunk_of(seq)
  local at = offset_of(seq, k) + 1
  return sub(column(k), at, at)
end

local function mark(seq, to)
  if last and seq > last then
    states[seq - last] = to
    return
  end
  local k = chunk_of(seq)
  write('SETRANGE', K.states_of .. text(k), text(offset_of(seq, k)), to)
  columns[k] = nil
end

-- Returns the reference of a command, `user:client:command` with each part encoded; false if it was deleted.
local function ref_at(seq)
  if last and seq > last then return refs[seq - last] end
  local k = chunk_of(seq)
  local ref = call('LINDEX', K.log_of .. text(k), text(offset_of(seq, k)))
  return ref and ref ~= '' and ref
end
local function user_of(ref) return match(ref, '^[^:]*') end
local function mailbox_of(ref) return match(ref, '^[^:]*:[^:]*') end

local function lease_of(incarnation)
  local lease = leases[incarnation]
  if lease == nil then
    lease = call('HGET', K.leases, incarnation)
    leases[incarnation] = lease
  end
  return lease
end
-- Returns whether commands may be given to an incarnation. The calling one is alive even if its lease has expired, unless it was
-- declared dead.
local function is_alive(incarnation)
  local lease = lease_of(incarnation)
  if not lease or lease == 'dead' then return false end
  return incarnation == me or tonumber(lease) > now
end

-- Queues a message to an incarnation. Messages to the calling one are returned in the reply, except in a pass: the reply could be
-- lost unnoticed, so a pass sends them through the inbox.
local function tell(incarnation, message)
  if incarnation == '' then return end
  if incarnation == me and not by_message then
    own[#own + 1] = message
    return
  end
  local lease = lease_of(incarnation)
  if lease and lease ~= 'dead' then append(messages, incarnation, message) end
end

-- The record of a command is one string: fields with a zero byte after each, then the payload until the command is acknowledged
-- or ends. In Lua it is a list of the reference, the stored string, the fields and the position of the payload. `record.ts`
-- gives the index of each.
--
-- `history` starts with three lines (fingerprint; action, with a tab and the trace if it has one; instant of the admission), then has
-- one line for each event:
-- A instant number instance node: a delivery attempt began;
-- H instant: `deliver` resolved; J or T, instant reason: the attempt was rejected or timed out;
-- R instant reason: the command was recovered, so another attempt is due;
-- K or N, instant instance: the client acknowledged or refused the command;
-- Z attempts confirmed recoveries instant: totals of older attempts, whose lines were dropped, and when `deliver` first
-- resolved in them.

local function text_of(c) return {{RECORD_TEXT}} end

local function unpack_record(ref, stored)
  local c = { ref, stored, sunpack({{RECORD}}, stored) }
  if tonumber(c.seq) and tonumber(c.stamp) and tonumber(c.attempts) and STATES[c.state] and c.scope ~= '' and (not OPEN[c.state] or tonumber(c.deadline_at)) then return c end
  error('no record')
end

-- Returns the record under a reference; nil if the key is missing or is not a valid record.
local function read(ref)
  local stored = call('GET', K.command_of .. ref)
  if not stored then return nil end
  local good, c = pcall(unpack_record, ref, stored)
  return good and c or nil
end

local function payload_of(c) return sub(c.stored, c.payload_at) end
-- The action, a tab, and the trace if there is one.
local function action_and_trace(c)
  local action, trace = match(c.history, '^[^\n]*\n([^\t\n]*)\t?([^\n]*)')
  return action .. '\t' .. trace
end
local function note(c, event, rest) c.history = c.history .. event .. now_text .. rest .. '\n' end

local function save(c, payload)
  call('SET', K.command_of .. c.ref, text_of(c) .. payload, 'KEEPTTL')
end

local function set_state(c, to)
  local from = c.state
  if from == to then return end
  c.state = to
  mark(tonumber(c.seq), to)
  add(counts, from, -1)
  add(counts, to, 1)
end

-- Drops the lines of the oldest attempt, and adds them to the totals in line Z.
local function shorten(history)
  local from = find(history, '\nA', 1, true)
  local to = from and find(history, '\nA', from + 2, true)
  if not to then return history end
  local head, group = sub(history, 1, from), sub(history, from, to)
  local attempts, confirmed, recoveries, handed_at = match(head, '\nZ(%d+)\t(%d+)\t(%d+)\t(%d*)\n$')
  if attempts then
    head = match(head, '^(.*\n)Z[^\n]*\n$')
  else
    attempts, confirmed, recoveries, handed_at = 0, 0, 0, ''
  end
  local function has(event) return find(group, '\n' .. event, 1, true) and 1 or 0 end
  return head .. 'Z' .. text(attempts + 1) .. '\t' .. text(confirmed + has('H')) .. '\t' .. text(recoveries + has('R')) .. '\t' .. (handed_at ~= '' and handed_at or match(group, '\nH(%d+)') or '') .. '\n' .. sub(history, to + 1)
end
