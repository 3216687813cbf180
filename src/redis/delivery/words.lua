-- Acknowledgements, settlements and cancellations of commands, fenced by instance; and outcomes of delivery attempts, fenced by
-- the number of the attempt.

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
local function say(ref, kind, reason, instance, was_asked, current, handed, acknowledges, by)
  local c = look(ref)
  local is_word = kind == 'k' or kind == 'n'
  if not c or not OPEN[c.state] then
    if c then tell_end(c) end
    if c and c.ended_by == by then return '1' end
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
      unbox(c)
      note(c, 'K', '\t' .. instance)
      set_state(c, 'k')
      save(c, '')
      count('acknowledgement acknowledged')
    end
    tell(c.incarnation, 'k\t' .. ref)
    return '1'
  end
  if kind == 'n' and c.state ~= 'k' then
    note(c, 'N', '\t' .. instance)
    count('acknowledgement refused')
  elseif acknowledges ~= '' and c.state ~= 'k' then
    note(c, 'K', '\t' .. instance)
    count('acknowledgement acknowledged')
  end
  finish(c, kind == 'n' and 'f' or kind, reason, now_text, by)
  return '1'
end

-- Records the outcome of an attempt, which happened `ago` ms before now: handed_over, rejected, or the reason of a timeout.
-- Returns 'p' if the calling node must retry after a pause.
local function conclude(ref, delivery, what, ago)
  local c = look(ref)
  if not c or c.delivery ~= delivery then
    if what ~= 'ack_timeout' and what ~= 'deliver_timed_out' then count('other late_outcome') end
    return '0'
  end
  if c.state == 'p' and c.incarnation == me then return what == 'handed_over' and '0' or 'p' end
  local is_late = c.outcome ~= '' and what ~= 'ack_timeout'
  if not OPEN[c.state] then
    -- A delivery that was confirmed before the command ended is recorded even if its report arrives later.
    if what == 'handed_over' and not is_late and now - ago < tonumber(c.ended_at) then
      note_handed_over(c)
      save(c, '')
    elseif what == 'handed_over' and c.outcome ~= 'handed_over' or what == 'rejected' then
      count('other late_outcome')
    end
    tell_end(c)
    return '0'
  end
  if is_late then return '0' end
  free_place(c)
  if what == 'handed_over' then
    note_handed_over(c)
    if c.state == 'a' then set_state(c, 'h') end
    save(c, c.state == 'k' and '' or payload_of(c))
    return '1'
  end
  if c.state == 'k' then
    if what == 'rejected' then
      c.outcome = what
      note(c, 'J', '\tdeliver_rejected')
      save(c, '')
    end
    return '0'
  end
  if c.state ~= 'a' and c.state ~= 'h' then return '0' end
  local reason = what == 'rejected' and 'deliver_rejected' or what
  c.outcome = what == 'rejected' and what or 'timed_out'
  note(c, what == 'rejected' and 'J' or 'T', '\t' .. reason)
  count('other attempt_' .. c.outcome)
  if tonumber(c.attempts) >= tonumber(c.max_attempts) then
    finish(c, 'f', 'attempts_exhausted', now_text, '')
    return '0'
  end
  note(c, 'R', '\t' .. reason)
  count('recovery ' .. reason)
  set_state(c, 'p')
  save(c, payload_of(c))
  return 'p'
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
