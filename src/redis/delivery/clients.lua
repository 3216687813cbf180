-- Acknowledgements, settlements and cancellations of commands, fenced by instance; and outcomes of delivery attempts, fenced by
-- the number of the attempt. Attaching and detaching of clients, and reservations for commands of other shards.
-- Inputs: the steps from `report` to `release` (steps.ts). Outputs: their answers, records, waiters, reservations.
-- Publishes: `acknowledged`, `replaced`, and by the functions of mailbox.lua and ending.lua `command` and `ended`.

-- Returns whether `instance` is no longer current. If the registry was asked, `current` is its reply. Otherwise the current
-- instance is the attached one, or the one of the last attempt.
local function is_fenced(c, instance, was_asked, current)
  if was_asked ~= '' then return current ~= instance end
  local w = waiter_of(mailbox_of(c.ref))
  return (w and w.instance or c.instance) ~= instance
end

local function note_handed_over(c)
  c.outcome = 'handed_over'
  note(c, 'H', '')
  count('other attempt_handed_over')
end

-- Records an acknowledgement or the end of a command. `kind` is k (acknowledged), n (refused), or the final state r, f or c.
-- `handed` is the number of the attempt whose `deliver` has resolved, if that is not recorded yet, or ''. With `acknowledges` the
-- end also counts as the acknowledgement. Returns 1 if the call took effect, else 0.
local function report(ref, kind, reason, instance, was_asked, current, handed, acknowledges, call_id)
  local c = look(ref)
  local is_word = kind == 'k' or kind == 'n'
  if not c or not OPEN[c.state] then
    if c then tell_end(c) end
    if c and c.ended_by == call_id then return '1' end
    if is_word then count('acknowledgement late') end
    return '0'
  end
  if instance ~= '' and is_fenced(c, instance, was_asked, current) then
    count(is_word and 'acknowledgement fenced' or 'other settle_fenced')
    return '0'
  end
  local is_news = handed == c.delivery and c.outcome == ''
  free_place(c)
  if is_news then note_handed_over(c) end
  if kind == 'k' then
    if c.state == 'k' then
      if is_news then save(c, '') end
      count('acknowledgement repeated')
    else
      unqueue(c)
      note(c, 'K', '\t' .. instance)
      set_state(c, 'k')
      save(c, '')
      count('acknowledgement acknowledged')
    end
    tell(c.incarnation, 'acknowledged\t' .. ref)
    return '1'
  end
  if kind == 'n' then
    note(c, 'N', '\t' .. instance)
    count('acknowledgement refused')
  elseif acknowledges ~= '' and c.state ~= 'k' then
    note(c, 'K', '\t' .. instance)
    count('acknowledgement acknowledged')
  end
  finish(c, kind == 'n' and 'f' or kind, reason, now_text, call_id)
  return '1'
end

-- Records the outcome of an attempt, which happened `ago` ms before now: handed_over, rejected, or the reason of a timeout.
-- Returns `pause` if the calling node must retry after a pause.
local function conclude(ref, delivery, outcome, ago)
  local c = look(ref)
  if not c or c.delivery ~= delivery then
    if outcome ~= 'ack_timeout' and outcome ~= 'deliver_timed_out' then count('other late_outcome') end
    return '0'
  end
  if c.state == 'p' and c.incarnation == me then return outcome == 'handed_over' and '0' or 'pause' end
  local is_late = c.outcome ~= '' and outcome ~= 'ack_timeout'
  if not OPEN[c.state] then
    -- A delivery that was confirmed before the command ended is recorded even if its report arrives later.
    if outcome == 'handed_over' and not is_late and now - ago < tonumber(c.ended_at) then
      note_handed_over(c)
      save(c, '')
    elseif outcome == 'handed_over' and c.outcome ~= 'handed_over' or outcome == 'rejected' then
      count('other late_outcome')
    end
    tell_end(c)
    return '0'
  end
  if is_late then return '0' end
  free_place(c)
  if outcome == 'handed_over' then
    note_handed_over(c)
    if c.state == 'a' then set_state(c, 'h') end
    save(c, c.state == 'k' and '' or payload_of(c))
    return '1'
  end
  if c.state == 'k' then
    if outcome == 'rejected' then
      c.outcome = outcome
      note(c, 'J', '\tdeliver_rejected')
      save(c, '')
    end
    return '0'
  end
  if c.state ~= 'a' and c.state ~= 'h' then return '0' end
  local reason = outcome == 'rejected' and 'deliver_rejected' or outcome
  c.outcome = outcome == 'rejected' and outcome or 'timed_out'
  note(c, outcome == 'rejected' and 'J' or 'T', '\t' .. reason)
  count('other attempt_' .. c.outcome)
  if tonumber(c.attempts) >= tonumber(c.max_attempts) then
    finish(c, 'f', 'attempts_exhausted', now_text, '')
    return '0'
  end
  note(c, 'R', '\t' .. reason)
  count('recovery ' .. reason)
  set_state(c, 'p')
  save(c, payload_of(c))
  return 'pause'
end

-- Starts the next attempt after the pause. A repeated call finds a higher attempt number and does nothing.
local function retry(ref, delivery)
  local c = look(ref)
  if c and c.state == 'p' and c.incarnation == me and c.delivery == delivery then place(c) end
  return '0'
end

-- Returns an attempt that this incarnation will not deliver and has not begun. It is removed from the history.
local function give_back(ref, delivery)
  local c = look(ref)
  if not c or c.state ~= 'a' or c.incarnation ~= me or c.delivery ~= delivery then return '0' end
  free_place(c)
  c.attempts = text(c.attempts - 1)
  c.history = match(c.history, '^(.*\n)A[^\n]*\n$') or c.history
  place(c)
  return '0'
end

-- Returns the message of a running attempt of this incarnation, for a node that lost the reply that carried it.
local function fetch(ref, delivery)
  local c = look(ref)
  if not c or c.state ~= 'a' or c.incarnation ~= me or c.delivery ~= delivery then return '0' end
  return message_of(c, payload_of(c))
end

-- Returns the record, or '' if none is retained.
local function look_up(ref)
  local c = look(ref)
  return c and text_of(c) or ''
end

-- Attaches and detaches clients, and keeps reservations for commands of other shards.

-- Returns the next order number of an attach in this shard. Based on the clock, so it also increases if the store lost its last
-- value.
local function take_order()
  local at = floor(now)
  local before = tonumber(call('GET', K.order) or 0)
  if at <= before then at = before + 1 end
  write('SET', K.order, text(at))
  return text(at)
end

-- Returns the attempts that the waiter was given and that are still running, as `reference delivery,...`.
local function given_to(w)
  local items = {}
  for seq in gmatch(w.given, '%d+') do
    local ref = ref_at(tonumber(seq))
    local c = read_own(ref, tonumber(seq))
    if c and c.state == 'a' and c.waiter_order == w.order then items[#items + 1] = ref .. ' ' .. c.delivery end
  end
  return concat(items, ',')
end

local function remove_waiter(m, w)
  waiters[m], dirty[m], touched[m] = false, nil, nil
  call('HDEL', K.waiters, m)
  if w.backlogged == '1' then call('SREM', K.backlogged, m) end
  call('ZREM', K.attached, m)
  call('ZREM', K.attached_of .. user_of(m), m)
end

-- Attaches a client to its mailbox, and replaces the previous waiter. An attach with a lower order than that of the current waiter,
-- or of the last detach, is late and changes nothing. The same order again is the same waiter.
-- Returns `attached` with the running attempts of the waiter, or `late` with the instance that is attached instead. Publishes
-- `replaced` to the node of the previous waiter.
local function attach(mailbox, instance, order, max_deliveries)
  flush_admissions()
  local was, own_order = waiter_of(mailbox), tonumber(order)
  if not was or was.order ~= order then
    local detached = tonumber(call('GET', K.detached_of .. mailbox) or 0)
    if own_order <= detached or (was and own_order < tonumber(was.order)) then
      count('other waiter_late')
      return 'late\0' .. (was and was.instance or '')
    end
    if was then
      tell(was.incarnation, 'replaced\t' .. mailbox .. '\t' .. was.order .. '\t' .. given_to(was))
      remove_waiter(mailbox, was)
      was = false
    end
  end
  if not lease_of(me) then
    leases[me] = text(now + {{LEASE}})
    write('HSET', K.leases, me, leases[me])
  end
  local w = was
  if not w or w.incarnation ~= me then
    -- Attempts of a former incarnation are recovered when it is declared dead.
    local since = w and w.since or now_text
    w = { order, me, instance, node, text(max_deliveries), since, w and w.backlogged or '', '0', ',' }
    waiters[mailbox] = w
    dirty[mailbox] = true
    write('ZADD', K.attached, order, mailbox)
    write('ZADD', K.attached_of .. user_of(mailbox), order, mailbox)
  end
  flush_queue(mailbox)
  if call('EXISTS', K.queue_of .. mailbox) == 1 then
    set_backlogged(mailbox, w, '1')
    touched[mailbox] = true
  else
    set_backlogged(mailbox, w, '')
  end
  local given = given_to(w)
  local _, held_count = string.gsub(given, ' ', '')
  if held_count ~= tonumber(w.held) then
    -- Some of its attempts have ended otherwise, or their records were replaced: correct the list.
    w.given, w.held = ',', text(held_count)
    for ref in gmatch(given, '([^, ]+) %d+') do
      local c = read(ref)
      w.given = w.given .. c.seq .. ','
    end
    dirty[mailbox] = true
  end
  return 'attached\0' .. given
end

-- Detaches the waiter with this order. From now on an attach with this order is late. Returns the running attempts of the waiter.
local function detach(mailbox, order)
  flush_admissions()
  if tonumber(order) > tonumber(call('GET', K.detached_of .. mailbox) or 0) then
    call('SET', K.detached_of .. mailbox, order, 'PX', '{{DETACHED}}')
  end
  local w = waiter_of(mailbox)
  if not w or w.order ~= order then return '' end
  local given = given_to(w)
  remove_waiter(mailbox, w)
  return given
end

-- Reserves capacity in a scope of this shard for a command of another shard. Concurrent dispatches of the command share one
-- reservation, and the first of them fixes the deadline. Returns the deadline, or '' if the scope is full.
local function reserve(scope, ref, ttl, capacity, writes_capacity, dispatch)
  local key = K.reserved_of .. scope
  local before = call('HGET', key, ref)
  if before then
    local deadline, dispatches = match(before, '^(%d+) (.*)$')
    if tonumber(deadline) > now then
      if not find(dispatches, dispatch, 1, true) then write('HSET', key, ref, before .. dispatch .. ' ') end
      return deadline
    end
    call('HDEL', key, ref)
    add(scopes, scope, -1)
  end
  if reserved(scope) >= tonumber(capacity) then
    if not has_expired then
      has_expired = true
      expire_due({{COMMANDS_A_PASS}}, true)
    end
    if reserved(scope) >= tonumber(capacity) then
      if writes_capacity ~= '' then write('HSET', K.capacities, scope, capacity) end
      return ''
    end
  end
  if writes_capacity ~= '' or new_scopes[scope] then write('HSET', K.capacities, scope, capacity) end
  local deadline = text(now + ttl)
  write('HSET', key, ref, deadline .. ' ' .. dispatch .. ' ')
  add(scopes, scope, 1)
  append(due, floor(deadline / {{BUCKET}}), '=' .. scope .. '=' .. ref)
  return deadline
end

-- Releases a reservation: for one dispatch that failed, or with '' for a command that has ended. Returns 1 if it was removed.
local function release(scope, ref, dispatch)
  local key = K.reserved_of .. scope
  local before = call('HGET', key, ref)
  if not before then return '0' end
  if dispatch ~= '' then
    local from, to = find(before, dispatch .. ' ', 1, true)
    if not from then return '0' end
    before = sub(before, 1, from - 1) .. sub(before, to + 1)
    if find(before, ' [^ ]') then
      write('HSET', key, ref, before)
      return '0'
    end
  end
  call('HDEL', key, ref)
  add(scopes, scope, -1)
  return '1'
end
