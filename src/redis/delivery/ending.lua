-- Ends commands, and deletes their records.
-- Inputs: commands, and the bounds of the run. Outputs: records, lists and counters without what is over.
-- Publishes: `ended` to the node that has the last attempt of a command.

local function reserved(scope)
  local stored = scope_now[scope]
  if not stored then
    stored = call('HGET', K.scopes, scope)
    -- The first reservation lists the scope. A pass removes scopes without reservations.
    if not stored then
      new_scopes[scope] = true
      write('ZADD', K.scope_order, 'NX', write('INCR', K.scope_seq), scope)
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
  tell(c.incarnation, 'ended\t' .. STATES[c.state] .. '\t' .. c.ref)
  if c.scope_shard ~= '' then released[#released + 1] = text(number) .. '\t' .. c.scope_shard .. '\t' .. c.scope .. '\t' .. c.ref end
end

-- Returns the instants of admission, first confirmed delivery, acknowledgement and end, separated by spaces; '' for a step that
-- did not happen.
local function times_of(c)
  local history = c.history
  local handed = match(history, '\nZ[^\n]*\t(%d+)\n') or match(history, '\nH(%d+)') or ''
  return match(history, '^[^\n]*\n[^\n]*\n([^\n]*)') .. ' ' .. handed .. ' ' .. (match(history, '.*\n[KN](%d+)') or '') .. ' ' .. c.ended_at
end

-- Returns when the retention of a command ends that ends at `at`. Many commands share that instant, so that readers can leave out
-- all of them by one count.
local function retained_until(at) return text(math.ceil((at + retention) / retention_step) * retention_step) end

-- Counts an ended command, or with -1 a deleted one, by state and reason, and by the end of its retention.
local function count_ended(until_ms, state, reason, by)
  if reason == '' then reason = {{NO_REASON}} end
  add(reasons, reason, by)
  add(expiring, until_ms .. ' ' .. state .. ' ' .. reason, by)
end

-- Ends a command in state `to`. `by` is the id of the call that ends it, or '' if no call does.
local function finish(c, to, reason, at, by)
  free_place(c)
  unqueue(c)
  set_state(c, to)
  c.ended_at, c.until_ms, c.reason, c.ended_by = at, retained_until(at), reason, by
  save(c, '')
  if c.scope_shard == '' then add(scopes, c.scope, -1) end
  add(held, user_of(c.ref), -1)
  count_ended(c.until_ms, to, reason, 1)
  -- A command that expired long ago is deleted in the next pass.
  if tonumber(c.until_ms) <= now then write('ZADD', K.chunks, 'LT', c.until_ms, text(chunk_of(tonumber(c.seq)))) end
  ended = ended + 1
  ended_refs[ended] = c.ref
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
  mark(seq, '.')
  add(counts, state, -1)
  if OPEN[state] then
    if ref then add(held, user_of(ref), -1) end
    if scope then add(scopes, scope, -1) end
  end
  if c then
    if not OPEN[state] then count_ended(c.until_ms, state, c.reason, -1) end
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

-- Deletes old records: those that ended more than `retention` ms ago, and all but the newest `kept_max` ended and the newest
-- `kept_max` rejected ones, in the order of admission.

local function newest_number() return tonumber(match(call('GET', K.seq) or '', '^%d+') or 0) end

-- Deletes the oldest `over` commands whose state is in `class`, starting where the previous run stopped.
local function forget_oldest(kind, class, over)
  local newest = newest_number()
  local first = tonumber(call('GET', K.first_chunk) or 0)
  local at = max(tonumber(call('HGET', K.kept_at, kind) or 0), first * {{CHUNK}} + 1)
  local wraps = at == first * {{CHUNK}} + 1
  for _ = 1, {{CHUNKS_A_RUN}} do
    local k = chunk_of(at)
    local found = find(column(k), class, offset_of(at, k) + 1)
    while found and over > 0 do
      local seq = k * {{CHUNK}} + found
      local ref = ref_at(seq)
      forget(seq, sub(column(k), found, found), ref, read_own(ref, seq))
      over, at = over - 1, seq + 1
      found = find(column(k), class, found + 1)
    end
    if over == 0 then break end
    at = (k + 1) * {{CHUNK}} + 1
    if at > newest then
      -- Commands that were open at the last visit may have ended since, so start once more at the oldest.
      if wraps then break end
      wraps, at = true, first * {{CHUNK}} + 1
    end
  end
  write('HSET', K.kept_at, kind, text(at))
end

local function keep_bounds()
  if ended > 0 then
    local n = call('HMGET', K.counts, 'r', 'f', 'x', 'c')
    local all = 0
    for i, state in ipairs({ 'r', 'f', 'x', 'c' }) do all = all + tonumber(n[i] or 0) + (counts[state] or 0) end
    if all > kept_max then forget_oldest('ended', '[rfxc]', min(all - kept_max, 2 * ended + 8)) end
  end
  if rejected > 0 then
    local all = tonumber(call('HGET', K.counts, 'j') or 0) + (counts.j or 0)
    if all > kept_max then forget_oldest('rejected', 'j', min(all - kept_max, 2 * rejected + 8)) end
  end
end

-- Deletes the commands of a chunk whose retention is over, and schedules the next visit of the chunk.
local function tidy(k)
  local log, known = call('LRANGE', K.log_of .. text(k), '0', '-1'), column(k)
  local next_at
  local function later(at) next_at = min(next_at or at, at) end
  for i = 1, #known do
    local state, seq = sub(known, i, i), k * {{CHUNK}} + i
    if OPEN[state] then
      later(now + retention)
    elseif STATES[state] then
      local ref = log[i] ~= '' and log[i] or false
      local c = read_own(ref, seq)
      local over = not c or tonumber(c.until_ms) or 0
      if over == true or over <= now then forget(seq, state, ref, c) else later(over) end
    end
  end
  if next_at then
    write('ZADD', K.chunks, text(next_at), text(k))
    return
  end
  -- The chunk is empty. If it was not full yet, the next admission starts in the following chunk.
  local newest = newest_number()
  if newest > 0 and chunk_of(newest) == k then write('SET', K.seq, text((k + 1) * {{CHUNK}}) .. ' ' .. match(call('GET', K.seq), '%d+$')) end
  call('DEL', K.log_of .. text(k), K.states_of .. text(k))
  call('ZREM', K.chunks, text(k))
  call('ZREM', K.starts, text(k))
  columns[k] = nil
end

-- Stores the oldest chunk, and the oldest with an open command, where readers begin.
local function move_first_chunks()
  local first, newest = tonumber(call('GET', K.first_chunk) or 0), chunk_of(newest_number() + 1)
  local from = first
  while first < newest and first - from < {{CHUNKS_A_RUN}} and call('EXISTS', K.states_of .. text(first)) == 0 do first = first + 1 end
  if first ~= from then
    write('SET', K.first_chunk, text(first))
    if call('EXISTS', K.states_of .. text(first)) == 0 then call('DEL', K.ended) end
  end
  from = tonumber(call('GET', K.first_open) or 0)
  local first_open = max(first, from)
  local to = min(newest, first_open + {{CHUNKS_A_RUN}})
  while first_open < to and not find(column(first_open), '[wahpqk]') do first_open = first_open + 1 end
  if first_open ~= from then write('SET', K.first_open, text(first_open)) end
end

-- Tidies the chunks that are due. Waits a while after a chunk is due, so that one visit deletes several commands.
local function tidy_due()
  local to = text(now - min(floor(retention / 64), {{TIDY_AFTER}}))
  local ks = call('ZRANGE', K.chunks, '-inf', to, 'BYSCORE', 'LIMIT', '0', '{{CHUNKS_A_PASS}}')
  for i = 1, #ks do
    if not pcall(tidy, tonumber(ks[i])) then call('ZREM', K.chunks, ks[i]) end
  end
  move_first_chunks()
  if #ks == {{CHUNKS_A_PASS}} then return true end
  -- All records whose retention ended by then are deleted now, so nothing is left to leave out.
  local over = call('ZRANGE', K.expiring, '-inf', to, 'BYSCORE', 'LIMIT', '0', '{{EXPIRING_A_PASS}}')
  for i = 1, #over do
    call('DEL', K.expiring_of .. over[i])
    call('ZREM', K.expiring, over[i])
  end
  return false
end

-- Returns whether an entry of a bucket of deadlines is left over: its command has ended, or its reservation was released.
local function is_over(entry)
  local scope, ref = match(entry, '^=([^=]*)=(.*)$')
  if scope then return call('HEXISTS', K.reserved_of .. scope, ref) == 0 end
  local seq = tonumber(match(entry, '^%d+'))
  return not seq or not OPEN[state_at(seq)]
end

-- Deletes what is over at the front of the buckets of coming deadlines, so that a reader finds the earliest one soon. The entries
-- would be deleted at their deadline otherwise, so this costs no more.
local function trim_due()
  local budget = {{ENTRIES_A_PASS}}
  for _, b in ipairs(call('ZRANGE', K.due, '(' .. now_text, '+inf', 'BYSCORE', 'LIMIT', '0', '16')) do
    local key = K.due_of .. b
    while budget > 0 do
      local entries = call('LRANGE', key, '0', '99')
      local over = 0
      while over < #entries and is_over(entries[over + 1]) do over = over + 1 end
      if over > 0 then call('LTRIM', key, text(over), '-1') end
      budget = budget - over
      if over < #entries then return end
      if over < 100 then
        call('ZREM', K.due, b)
        break
      end
    end
  end
end
