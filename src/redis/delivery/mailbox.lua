-- A mailbox (`user:client`): who waits there, what he was given, and a box with what waits. Where a living waiter has a
-- free place the box is empty; where it is not, the waiter is `stuck`.

-- In Lua a list; `delivery/record.ts` names its places. `hand` has the numbers of commands that were given to the waiter
-- and whose hand-over has not ended: `,7,12,`.
local function waiter_of(m)
  local w = waiters[m]
  if w == nil then
    local stored = call('HGET', K.waiters, m)
    w = stored and { sunpack({{WAITER}}, stored) } or false
    waiters[m] = w
  end
  return w
end

local function waiter_text(w) return {{WAITER_TEXT}} end

local function set_stuck(m, w, to)
  if w.stuck == to then return end
  w.stuck = to
  dirty[m] = true
  call(to == '1' and 'SADD' or 'SREM', K.stuck, m)
end

local function has_place(w) return tonumber(w.held) < tonumber(w.most) end
local function is_ready(w) return w and w.stuck == '' and has_place(w) and is_alive(w.incarnation) end

-- Writes what this run puts into a box, before somebody looks into it.
local function flush_box(m)
  local list = mail[m]
  if not list then return end
  mail[m] = nil
  call('RPUSH', K.box_of .. m, unpack(list))
end

-- Frees the place of an attempt whose hand-over ends by the change that follows.
local function free_place(c)
  if c.state ~= 'a' then return end
  local m = mailbox_of(c.ref)
  local w = waiter_of(m)
  if not w or w.order ~= c.waiter_order then return end
  local entry = ',' .. c.seq .. ','
  local at = find(w.hand, entry, 1, true)
  if not at then return end
  w.hand = sub(w.hand, 1, at) .. sub(w.hand, at + #entry)
  w.held = text(w.held - 1)
  dirty[m] = true
  if w.stuck == '1' then touched[m] = true end
end

-- Takes a command that waits out of its box.
local function unbox(c)
  if c.state ~= 'w' and c.state ~= 'q' then return end
  local m = mailbox_of(c.ref)
  flush_box(m)
  -- A foreign value in place of the box does not keep a command from its end.
  local removed = redis.pcall('LREM', K.box_of .. m, '1', c.ref)
  local w = waiter_of(m)
  if removed ~= 0 and w and w.stuck == '1' and call('EXISTS', K.box_of .. m) == 0 then set_stuck(m, w, '') end
end

local function message_of(c, payload)
  return 'c\t' .. c.ref .. '\t' .. c.delivery .. '\t' .. c.attempts .. '\t' .. c.deadline_at .. '\t' .. c.waiter_order .. '\t' .. action_of(c) .. '\t' .. payload
end

-- The next attempt, by a waiter with a free place.
local function give(c, m, w)
  local payload = payload_of(c)
  if tonumber(c.attempts) >= {{ATTEMPTS_KEPT}} then c.history = shorten(c.history) end
  c.attempts, c.delivery = text(c.attempts + 1), text(c.delivery + 1)
  c.incarnation, c.waiter_order, c.instance, c.outcome = w.incarnation, w.order, w.instance, ''
  note(c, 'A', '\t' .. c.attempts .. '\t' .. w.instance .. '\t' .. w.node)
  set_state(c, 'a')
  save(c, payload)
  w.hand, w.held = w.hand .. c.seq .. ',', text(w.held + 1)
  dirty[m] = true
  tell(w.incarnation, message_of(c, payload))
end

-- A command that nobody has in hand: to its waiter, or to the front of its box.
local function place(c)
  local m = mailbox_of(c.ref)
  local w = waiter_of(m)
  if is_ready(w) then return give(c, m, w) end
  if c.attempts == '0' then set_state(c, 'w') else set_state(c, 'q') end
  c.incarnation, c.waiter_order = '', ''
  save(c, payload_of(c))
  flush_box(m)
  call('LPUSH', K.box_of .. m, c.ref)
  if w then set_stuck(m, w, '1') end
end
