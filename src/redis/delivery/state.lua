-- What a run knows and has changed so far. docs/delivery-design.md lists the keys. A run is atomic: what is cached here
-- stays true until its end, where counters, waiters and messages are written, each once.
local floor, min, max = math.floor, math.min, math.max
local sub, find, match, gmatch, fmt, concat = string.sub, string.find, string.match, string.gmatch, string.format, table.concat
local sunpack, call = struct.unpack, redis.call

-- Waiting: w. Attempted: a given to a node, h handed over, p in a pause, q waiting for another attempt. Acknowledged: k.
local OPEN = { w = true, a = true, h = true, p = true, q = true, k = true }
local STATES = {
  w = 'waiting', a = 'attempted', h = 'attempted', p = 'attempted', q = 'attempted', k = 'acknowledged',
  r = 'resulted', f = 'failed', x = 'expired', c = 'cancelled', j = 'rejected',
}

-- Names of the keys of a shard; those that end in `_of` are beginnings of names.
local K = {}
local function name_keys(P)
  if K.prefix == P then return end
  K.prefix = P
  K.attached = P .. 'attached'
  K.attached_of = P .. 'attached-of:'
  K.box_of = P .. 'box:'
  K.capacities = P .. 'capacities'
  K.chunks = P .. 'chunks'
  K.command_of = P .. 'command:'
  K.counts = P .. 'counts'
  K.due = P .. 'due'
  K.due_of = P .. 'due:'
  K.first_chunk = P .. 'first-chunk'
  K.held = P .. 'held'
  K.inbox_of = P .. 'inbox:'
  K.kept_at = P .. 'kept-at'
  K.leases = P .. 'leases'
  K.left_of = P .. 'left:'
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
  K.stuck = P .. 'stuck'
  K.sweeps = P .. 'sweeps'
  K.told = P .. 'told'
  K.version = P .. 'version'
  K.waiters = P .. 'waiters'
  K.wake_of = P .. 'wake:'
end

-- The run: instant in ms, the calling incarnation and its node, its bounds.
local now, now_text, me, node
local retention, kept_max, tracked_max, held_max
-- Caches: columns of states by chunk, waiters by mailbox, leases by incarnation.
local columns, waiters, leases
-- Admissions of this run: `last` is the number before the first of them; the others are lists to append.
local last, last_stamp, added, refs, states, lists, due, mail, deadlines
-- Changes of counters by their names, and cached values.
local counts, reasons, scopes, scope_now, new_scopes, held, held_now, tracked
-- Mailboxes in which a place may have become free, and waiters to save.
local touched, dirty
-- Messages to other incarnations, to this one, reservations to release elsewhere, and what was counted.
local messages, own, by_message, released, counted
local now_micros, open_numbers
local number, ended, rejected, has_expired, changed, now_stored, is_told, failure

local function begin_run()
  columns, waiters, leases = {}, {}, {}
  last, last_stamp, added, refs, states, lists, due, mail, deadlines = nil, nil, 0, {}, {}, {}, {}, {}, {}
  counts, reasons, scopes, scope_now, new_scopes, held, held_now, tracked = {}, {}, {}, {}, {}, {}, {}, nil
  touched, dirty = {}, {}
  messages, own, by_message, released, counted = {}, {}, false, {}, {}
  number, ended, rejected, has_expired, changed, failure = 0, 0, 0, false, false, ''
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

-- Commands are numbered from 1. A chunk has the references and the states of {{CHUNK}} of them.
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
  call('SETRANGE', K.states_of .. text(k), text(offset_of(seq, k)), to)
  columns[k] = nil
end

-- The reference of a command, `user:client:command`, each part encoded; false where it is not known any more.
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
-- Whether commands may be given to an incarnation. The calling one shows that it lives.
local function is_alive(incarnation)
  local lease = lease_of(incarnation)
  if not lease or lease == 'dead' then return false end
  return incarnation == me or tonumber(lease) > now
end

-- Messages to the calling incarnation travel in the reply. Those of a pass do not: it could be lost without a trace.
local function tell(incarnation, message)
  if incarnation == '' then return end
  if incarnation == me and not by_message then
    own[#own + 1] = message
    return
  end
  local lease = lease_of(incarnation)
  if lease and lease ~= 'dead' then append(messages, incarnation, message) end
end
