-- Ends commands, and deletes their records.

local function reserved(scope)
  local stored = scope_now[scope]
  if not stored then
    stored = call('HGET', K.scopes, scope)
    -- The first reservation lists the scope. A pass removes scopes without reservations.
    if not stored then
      new_scopes[scope] = true
      call('ZADD', K.scope_order, 'NX', call('INCR', K.scope_seq), scope)
    end
    stored = tonumber(stored or 0)
    scope_now[scope] = stored
  end
  return stored + (scopes[scope] or 0)
end
local function held_by(user)
  local stored = held_now[user]
  if not stored then
    stored = tonumber(call('HGET', K.held, user) or 0)
    held_now[user] = stored
  end
  return stored + (held[user] or 0)
end
local function tracked_now()
  if not tracked then
    tracked = 0
    for _, n in ipairs(call('HMGET', K.counts, 'w', 'a', 'h', 'p', 'q', 'k')) do tracked = tracked + tonumber(n or 0) end
  end
  return tracked + (counts.w or 0) + (counts.a or 0) + (counts.h or 0) + (counts.p or 0) + (counts.q or 0) + (counts.k or 0)
end

-- Notifies the incarnation that had the last attempt that the command has ended, and asks the caller to release its reservation
-- in another shard. Idempotent.
local function tell_end(c)
  tell(c.incarnation, 'e\t' .. STATES[c.state] .. '\t' .. c.ref)
  if c.scope_shard ~= '' then released[#released + 1] = text(number) .. '\t' .. c.scope_shard .. '\t' .. c.scope .. '\t' .. c.ref end
end

-- Returns the instants of admission, first confirmed delivery, acknowledgement and end, separated by spaces; '' for a step that
-- did not happen.
local function times_of(c)
  local history = c.history
  local handed = match(history, '\nZ[^\n]*\t(%d+)\n') or match(history, '\nH(%d+)') or ''
  return match(history, '^[^\n]*\n[^\n]*\n([^\n]*)') .. ' ' .. handed .. ' ' .. (match(history, '\n[KN](%d+)') or '') .. ' ' .. c.ended_at
end

-- Ends a command in state `to`. `by` is the id of the call that ends it, or '' if no call does.
local function finish(c, to, reason, at, by)
  free_place(c)
  unbox(c)
  set_state(c, to)
  c.ended_at, c.until_ms, c.reason, c.ended_by = at, text(at + retention), reason, by
  save(c, '')
  if c.scope_shard == '' then add(scopes, c.scope, -1) end
  add(held, user_of(c.ref), -1)
  add(reasons, reason ~= '' and reason or {{NO_REASON}}, 1)
  ended = ended + 1
  count('outcome ' .. STATES[to])
  count('took ' .. times_of(c))
  tell_end(c)
end

-- Returns the command in its current state; expires it first if its deadline has passed. After its retention, returns nil and
-- the record that is still stored.
local function look(ref)
  local c = read(ref)
  if not c then return nil end
  if OPEN[c.state] then
    if tonumber(c.deadline_at) <= now then finish(c, 'x', 'deadline_passed', c.deadline_at, '') end
  elseif tonumber(c.until_ms) <= now then
    return nil, c
  end
  return c
end

-- Deletes a command. `c` is its record, or nil if another application removed or replaced it; then `scope` is the scope from the
-- bucket of its deadline.
local function forget(seq, state, ref, c, scope)
  changed = true
  mark(seq, '.')
  add(counts, state, -1)
  if OPEN[state] then
    if ref then add(held, user_of(ref), -1) end
    if scope then add(scopes, scope, -1) end
  end
  if c then
    if not OPEN[state] then add(reasons, c.reason ~= '' and c.reason or {{NO_REASON}}, -1) end
    call('DEL', K.command_of .. ref)
    scope = c.scope
  end
  if not ref then return end
  local user = user_of(ref)
  call('LREM', K.of_of .. user, '1', text(seq))
  if scope and scope ~= user then call('LREM', K.of_of .. scope, '1', text(seq)) end
  local k = chunk_of(seq)
  if not (last and seq > last) then call('LSET', K.log_of .. text(k), text(offset_of(seq, k)), '') end
end

-- Returns the record under `ref` if it has that number, else nil.
local function read_own(ref, seq)
  if not ref then return nil end
  local good, c = pcall(read, ref)
  return good and c and tonumber(c.seq) == seq and c or nil
end

-- Handles one entry of a due bucket: `number` or `number scope` for a command, `=scope=reference` for a reservation that a
-- command of another shard holds.
local function expire(entry)
  local scope, ref = match(entry, '^=([^=]*)=(.*)$')
  if scope then
    local stored = call('HGET', K.reserved_of .. scope, ref)
    local deadline = stored and tonumber(match(stored, '^%d+') or 0)
    if deadline and deadline <= now then
      call('HDEL', K.reserved_of .. scope, ref)
      add(scopes, scope, -1)
    end
    return
  end
  local seq = tonumber(match(entry, '^%d+'))
  local state = seq and state_at(seq)
  if not state or not OPEN[state] then return end
  ref = ref_at(seq)
  local c = read_own(ref, seq)
  if not c then return forget(seq, state, ref, nil, match(entry, ' (.*)$') or (ref and user_of(ref))) end
  local at = tonumber(c.deadline_at)
  if not at or at <= now then finish(c, 'x', 'deadline_passed', at and c.deadline_at or now_text, '') end
end

local flush_admissions

-- Expires commands and reservations past their deadline, at most `budget`. Empties the buckets of past deadlines; with
-- `with_current` it also goes through the current bucket, for callers that need room at once.
local function expire_due(budget, with_current)
  flush_admissions()
  local function each(entries)
    for i = 1, #entries do
      -- If one entry fails because of a foreign value in a key, the others still expire. It is retried a second later.
      if not pcall(expire, entries[i]) then append(due, floor((now + 1000) / {{BUCKET}}), entries[i]) end
    end
  end
  for _, b in ipairs(call('ZRANGE', K.due, '-inf', now_text, 'BYSCORE', 'LIMIT', '0', '16')) do
    local key = K.due_of .. b
    while budget > 0 do
      local entries = call('LPOP', key, text(min(100, budget)))
      if not entries then
        call('ZREM', K.due, b)
        break
      end
      budget = budget - #entries
      each(entries)
    end
  end
  if with_current then each(call('LRANGE', K.due_of .. text(floor(now / {{BUCKET}})), '0', text(budget))) end
  return budget
end
