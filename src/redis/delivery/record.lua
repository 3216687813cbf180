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
local function action_of(c) return match(c.history, '^[^\n]*\n([^\t\n]*)') end
local function note(c, event, rest) c.history = c.history .. event .. now_text .. rest .. '\n' end

local function save(c, payload)
  changed = true
  call('SET', K.command_of .. c.ref, text_of(c) .. payload)
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
