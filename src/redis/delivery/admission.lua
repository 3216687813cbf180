-- Admission of a command: it is found as admitted before, refused, or written, looked for in that order. A new command is
-- given at once to its attached client if that has a free slot.
-- Inputs: the step `admit` (steps.ts). Outputs: its answer, the record, the lists of commands, counters.
-- Publishes: `command` to the node that a command is given to.

-- Appends all commands that this run admitted to the lists, in one go.
function flush_admissions()
  if added > 0 then
    write('SET', K.seq, text(last + added) .. ' ' .. text(last_stamp + added))
    local i = 1
    while i <= added do
      local k = chunk_of(last + i)
      local offset = offset_of(last + i, k)
      local to = min(added, (k + 1) * {{CHUNK}} - last)
      write('RPUSH', K.log_of .. text(k), unpack(refs, i, to))
      write('SETRANGE', K.states_of .. text(k), text(offset), concat(states, '', i, to))
      if offset == 0 then
        write('ZADD', K.chunks, text(now + retention), text(k))
        write('ZADD', K.starts, text(last_stamp + i), text(k))
      end
      columns[k] = nil
      i = to + 1
    end
    for name, seqs in pairs(lists) do write('RPUSH', K.of_of .. name, unpack(seqs)) end
    added, refs, states, lists = 0, {}, {}, {}
  end
  last = nil
end

local function flush_due()
  for b, entries in pairs(due) do
    if write('RPUSH', K.due_of .. text(b), unpack(entries)) == #entries then
      write('ZADD', K.due, text((b + 1) * {{BUCKET}} - 1), text(b))
    end
  end
  due = {}
end

local function is_attached(w, required, current)
  return w and is_alive(w.incarnation) and (required == 'any' or w.instance == current)
end

local function refusal_of(w, user, scope, scope_shard, capacity, required, current, refused)
  if required ~= '' and not is_attached(w, required, current) then return 'no_waiter' end
  if refused ~= '' then return refused end
  if tracked_now() >= tracked_max then return 'overloaded' end
  if held_by(user) >= held_max or (scope_shard == '' and reserved(scope) >= tonumber(capacity)) then return 'capacity_exceeded' end
end

-- Reads the last number and stamp that were used before this run. Stamps are microseconds of the store's clock and strictly
-- increase within a shard; they order the commands of several shards.
function open_numbers()
  local number, stamp = match(call('GET', K.seq) or '', '^(%d+) (%d+)$')
  last = tonumber(number or 0)
  last_stamp = max(tonumber(stamp or 0), now_micros - 1)
end

-- Returns the deadline `ttl` ms from now, and its bucket. Cached, because most admissions of a run have the same `ttl`.
local function deadline_in(ttl)
  local known = deadlines[ttl]
  if not known then
    local at = now + ttl
    known = { text(at), floor(at / {{BUCKET}}) }
    deadlines[ttl] = known
  end
  return known[1], known[2]
end

-- The reply to a dispatch whose command exists already: it is a conflict if its action or payload differs.
local function known(c, fingerprint)
  if sub(c.history, 1, #fingerprint + 1) ~= fingerprint .. '\n' then
    count('other dispatch_conflict')
    return 'conflict'
  end
  count('other dispatch_repeated')
  return 'known\0' .. text_of(c)
end

-- Admits one command.
--   mailbox, id        user:client and command, encoded
--   action, trace      trace: '', or a tab and the trace
--   scope, scope_shard scope_shard: '' if the scope is in this shard, else where its place is reserved until `deadline`
--   deadline, ttl      deadline: epoch ms or '', and then it is `ttl` ms from now
--   capacity, writes_capacity  of the scope, and whether the store does not know it yet ('1' or '')
--   max_attempts       of this command
--   fingerprint        of action and payload
--   required, current  which attached client it requires: '' (none), any, or current, the instance `current`
--   refused            a reason for which it is refused in any case, or ''
--   call_id            id of the dispatch call
-- Returns `given` or `admitted` with deadline, node, order and instance; `rejected` or `known` with the record; or `conflict`.
-- Publishes `command` to another node that it is given to.
local function admit(mailbox, id, action, trace, scope, scope_shard, deadline, ttl, capacity, writes_capacity, max_attempts, fingerprint, required, current, refused, call_id, payload)
  local ref, user = mailbox .. ':' .. id, user_of(mailbox)
  local key = K.command_of .. ref
  local w = waiter_of(mailbox)
  local refusal = refusal_of(w, user, scope, scope_shard, capacity, required, current, refused)
  if (refusal == 'overloaded' or refusal == 'capacity_exceeded') and refused == '' and not has_expired then
    -- Commands past their deadline must not count against a limit, even if no pass has expired them yet.
    has_expired = true
    expire_due({{COMMANDS_A_PASS}}, true)
    refusal = refusal_of(w, user, scope, scope_shard, capacity, required, current, refused)
  end
  if scope_now[scope] and (writes_capacity ~= '' or new_scopes[scope]) then write('HSET', K.capacities, scope, capacity) end
  if not last then open_numbers() end
  local seq = text(last + added + 1)
  local numbers = seq .. '\0' .. text(last_stamp + added + 1)
  local state, deadline_at, bucket, record, until_ms = 'w', deadline, nil, nil, nil
  if deadline == '' then deadline_at, bucket = deadline_in(ttl) else bucket = floor(deadline / {{BUCKET}}) end
  -- The fields are in the order of `RECORD_FIELDS`. One concatenation for each record, for speed.
  if refusal then
    state, until_ms = 'j', retained_until(now)
    record = 'j\0' .. numbers .. '\0\0' .. scope .. '\0\0000\0000\0\0\0\0\0' .. max_attempts .. '\0' .. now_text .. '\0' .. until_ms .. '\0' .. refusal .. '\0' .. call_id .. '\0' .. fingerprint .. '\n' .. action .. trace .. '\n' .. now_text .. '\n\0'
  elseif is_ready(w) and (deadline == '' or tonumber(deadline) > now) then
    state = 'a'
    record = 'a\0' .. numbers .. '\0' .. deadline_at .. '\0' .. scope .. '\0' .. scope_shard .. '\0001\0001\0' .. w.incarnation .. '\0' .. w.order .. '\0\0' .. w.instance .. '\0' .. max_attempts .. '\0\0\0\0\0' .. fingerprint .. '\n' .. action .. trace .. '\n' .. now_text .. '\nA' .. now_text .. '\t1\t' .. w.instance .. '\t' .. w.node .. '\n\0' .. payload
  else
    record = 'w\0' .. numbers .. '\0' .. deadline_at .. '\0' .. scope .. '\0' .. scope_shard .. '\0000\0000\0\0\0\0\0' .. max_attempts .. '\0\0\0\0\0' .. fingerprint .. '\n' .. action .. trace .. '\n' .. now_text .. '\n\0' .. payload
  end
  local old = write('SET', key, record, 'NX', 'GET')
  if old then
    local c, over = look(ref)
    if c and c.state ~= 'j' then return known(c, fingerprint) end
    -- A Redis client that resends the same call gets the same rejection, even if there is room by now.
    if c and c.ended_by == call_id then return 'rejected\0' .. text_of(c) end
    c = c or over
    if c then
      flush_admissions()
      forget(tonumber(c.seq), c.state, ref, c)
      last, last_stamp = tonumber(seq) - 1, tonumber(match(numbers, '%d+$')) - 1
    end
    write('SET', key, record)
  end
  added = added + 1
  refs[added], states[added] = ref, state
  append(lists, user, seq)
  if scope ~= user then append(lists, scope, seq) end
  add(counts, state, 1)
  if refusal then
    rejected = rejected + 1
    count_ended(until_ms, 'j', refusal, 1)
    count('outcome rejected')
    return 'rejected\0' .. record
  end
  if scope_shard == '' then add(scopes, scope, 1) end
  add(held, user, 1)
  append(due, bucket, scope == user and seq or seq .. ' ' .. scope)
  count('other admitted')
  if state == 'w' then
    append(mail, mailbox, ref)
    if w then set_backlogged(mailbox, w, '1') end
    return 'admitted\0' .. deadline_at .. '\0\0\0'
  end
  w.given, w.held = w.given .. seq .. ',', text(w.held + 1)
  dirty[mailbox] = true
  local is_own = w.incarnation == me and not by_message
  if not is_own then
    tell(w.incarnation, 'command\t' .. ref .. '\t1\t1\t' .. deadline_at .. '\t' .. w.order .. '\t' .. action .. (trace == '' and '\t' or trace) .. '\t' .. payload)
  end
  return (is_own and 'given' or 'admitted') .. '\0' .. deadline_at .. '\0' .. w.node .. '\0' .. w.order .. '\0' .. w.instance
end
