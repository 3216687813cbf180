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
  call('HSET', K.kept_at, kind, text(at))
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
    call('ZADD', K.chunks, text(next_at), text(k))
    return
  end
  -- The chunk is empty. If it was not full yet, the next admission starts in the following chunk.
  local newest = newest_number()
  if newest > 0 and chunk_of(newest) == k then call('SET', K.seq, text((k + 1) * {{CHUNK}}) .. ' ' .. match(call('GET', K.seq), '%d+$')) end
  call('DEL', K.log_of .. text(k), K.states_of .. text(k))
  call('ZREM', K.chunks, text(k))
  call('ZREM', K.starts, text(k))
  columns[k] = nil
end

-- Tidies the chunks that are due. Waits a while after a chunk is due, so that one visit deletes several commands.
local function tidy_due()
  local ks = call('ZRANGE', K.chunks, '-inf', text(now - min(floor(retention / 64), {{TIDY_AFTER}})), 'BYSCORE', 'LIMIT', '0', '{{CHUNKS_A_PASS}}')
  for i = 1, #ks do
    if not pcall(tidy, tonumber(ks[i])) then call('ZREM', K.chunks, ks[i]) end
  end
  local first, newest = tonumber(call('GET', K.first_chunk) or 0), chunk_of(newest_number() + 1)
  local from = first
  while first < newest and first - from < {{CHUNKS_A_RUN}} and call('EXISTS', K.states_of .. text(first)) == 0 do first = first + 1 end
  if first ~= from then call('SET', K.first_chunk, text(first)) end
  return #ks
end
