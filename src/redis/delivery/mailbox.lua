-- A mailbox (`user:client`) has a waiter, which is the attached client, and a queue with the commands that wait. If a waiter with a
-- live lease has a free slot its queue is empty. A waiter whose queue has commands is marked as `backlogged`.
-- Inputs: commands and waiters. Outputs: which commands a waiter was given, and which wait in its queue.
-- Publishes: `command` to the node of a waiter that is given one.

-- Returns the waiter of a mailbox, or false. It is a list; `delivery/record.ts` gives the index of each field. `given` has the
-- numbers of the commands that were given to the waiter and whose delivery attempt is still running, as `,7,12,`.
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

local function set_backlogged(m, w, to)
  if w.backlogged == to then return end
  w.backlogged = to
  dirty[m] = true
  call(to == '1' and 'SADD' or 'SREM', K.backlogged, m)
end

local function has_place(w) return tonumber(w.held) < tonumber(w.most) end
local function is_ready(w) return w and w.backlogged == '' and has_place(w) and is_alive(w.incarnation) end

-- Writes the commands that this run adds to a queue. Must run before the queue is read.
local function flush_queue(m)
  local list = mail[m]
  if not list then return end
  mail[m] = nil
  write('RPUSH', K.queue_of .. m, unpack(list))
end

-- Frees the slot of a delivery attempt, before the change of state that ends the attempt.
local function free_place(c)
  if c.state ~= 'a' then return end
  local m = mailbox_of(c.ref)
  local w = waiter_of(m)
  if not w or w.order ~= c.waiter_order then return end
  local entry = ',' .. c.seq .. ','
  local at = find(w.given, entry, 1, true)
  if not at then return end
  w.given = sub(w.given, 1, at) .. sub(w.given, at + #entry)
  w.held = text(w.held - 1)
  dirty[m] = true
  if w.backlogged == '1' then touched[m] = true end
end

-- Removes a waiting command from its queue.
local function unqueue(c)
  if c.state ~= 'w' and c.state ~= 'q' then return end
  local m = mailbox_of(c.ref)
  flush_queue(m)
  -- The command must end even if another application overwrote the queue.
  local removed = redis.pcall('LREM', K.queue_of .. m, '1', c.ref)
  local w = waiter_of(m)
  if removed ~= 0 and w and w.backlogged == '1' and call('EXISTS', K.queue_of .. m) == 0 then set_backlogged(m, w, '') end
end

local function message_of(c, payload)
  return 'command\t' .. c.ref .. '\t' .. c.delivery .. '\t' .. c.attempts .. '\t' .. c.deadline_at .. '\t' .. c.waiter_order .. '\t' .. action_and_trace(c) .. '\t' .. payload
end

-- Starts the next delivery attempt at a waiter with a free slot.
local function give(c, m, w)
  local payload = payload_of(c)
  if tonumber(c.attempts) >= {{ATTEMPTS_KEPT}} then c.history = shorten(c.history) end
  c.attempts, c.delivery = text(c.attempts + 1), text(c.delivery + 1)
  c.incarnation, c.waiter_order, c.instance, c.outcome = w.incarnation, w.order, w.instance, ''
  note(c, 'A', '\t' .. c.attempts .. '\t' .. w.instance .. '\t' .. w.node)
  set_state(c, 'a')
  save(c, payload)
  w.given, w.held = w.given .. c.seq .. ',', text(w.held + 1)
  dirty[m] = true
  tell(w.incarnation, message_of(c, payload))
end

-- Gives a command that has no running attempt to its waiter, or puts it at the front of its queue.
local function place(c)
  local m = mailbox_of(c.ref)
  local w = waiter_of(m)
  if is_ready(w) then return give(c, m, w) end
  if c.attempts == '0' then set_state(c, 'w') else set_state(c, 'q') end
  c.incarnation, c.waiter_order = '', ''
  save(c, payload_of(c))
  flush_queue(m)
  write('LPUSH', K.queue_of .. m, c.ref)
  if w then set_backlogged(m, w, '1') end
end
