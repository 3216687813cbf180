-- One run: the steps that a node batches for a shard in one turn of its event loop, in one call. This is the function of the
-- delivery library.
-- Inputs: args[1] has time, limits and caller, args[2] the batch: letters and arguments of steps (steps.ts).
-- Outputs: time; answers of the steps ('!' and a text for one that failed); messages to the calling node; event counts;
-- reservations to release in other shards; whether its inbox has messages; what failed at the end.
-- Publishes: the queued messages to each other node, in its inbox and on its channel `wake:<incarnation>`: `command` (a command
-- is given), `acknowledged`, `ended`, `replaced` (another client was attached).
--@include ./state.lua
--@include ./mailbox.lua
--@include ./ending.lua
--@include ./admission.lua
--@include ./clients.lua
--@include ./pass.lua

local STEPS = { {{STEPS}} }
local FORMATS = {}

-- Gives the commands of a queue to its waiter, while that has free slots.
local function refill(m)
  local w = waiter_of(m)
  if not w or w.backlogged ~= '1' or not is_alive(w.incarnation) then return end
  flush_queue(m)
  for _ = 1, {{REFILL_MAX}} do
    if not has_place(w) then return end
    local ref = call('LPOP', K.queue_of .. m)
    if not ref then break end
    local c = read(ref)
    if c and (c.state == 'w' or c.state == 'q') then
      if tonumber(c.deadline_at) <= now then
        finish(c, 'x', 'deadline_passed', c.deadline_at, '')
      else
        give(c, m, w)
      end
    end
  end
  if call('EXISTS', K.queue_of .. m) == 0 then set_backlogged(m, w, '') end
end

local function write_counters(key, changes, keeps_zero)
  for name, by in pairs(changes) do
    if by ~= 0 and write('HINCRBY', key, name, text(by)) <= 0 and not keeps_zero then call('HDEL', key, name) end
  end
end

-- At most {{REASONS_MAX}} reasons have their own counter. The rest is added to, and subtracted from, the counter `other`.
local function write_reasons()
  for name, by in pairs(reasons) do
    if by ~= 0 then
      local n = write('HINCRBY', K.reasons, name, text(by))
      local is_other = n < 0 or n == by and call('HLEN', K.reasons) > {{REASONS_MAX}}
      if n <= 0 or is_other then call('HDEL', K.reasons, name) end
      if is_other and write('HINCRBY', K.reasons, 'other', text(n)) <= 0 then call('HDEL', K.reasons, 'other') end
    end
  end
end

local function write_expiring()
  for name, by in pairs(expiring) do
    local until_ms, field = match(name, '^(%d+) (.*)$')
    if until_ms and by ~= 0 then
      local n = write('HINCRBY', K.expiring_of .. until_ms, field, text(by))
      if n <= 0 then call('HDEL', K.expiring_of .. until_ms, field) end
      if by > 0 and n == by then write('ZADD', K.expiring, until_ms, until_ms) end
    end
  end
end

-- Lists the commands that ended last, newest first.
local function write_ended()
  if ended > 0 and write('LPUSH', K.ended, unpack(ended_refs)) > 2 * {{SAMPLE}} then call('LTRIM', K.ended, '0', '{{SAMPLE}}') end
end

local function save_waiters()
  local saved = {}
  for m in pairs(dirty) do
    local w = waiters[m]
    if w then
      saved[#saved + 1] = m
      saved[#saved + 1] = waiter_text(w)
    end
  end
  if #saved == 0 then return end
  write('HSET', K.waiters, unpack(saved))
end

local function send(incarnation, list)
  local message = concat(list, '\2')
  local before = call('HGET', K.last_message, incarnation) or '0-0'
  local id = write('XADD', K.inbox_of .. incarnation, 'MAXLEN', '~', '{{MESSAGES_MAX}}', '*', 'p', before, 'm', message)
  write('HSET', K.last_message, incarnation, id)
  call('SPUBLISH', K.wake_of .. incarnation, before .. '\3' .. id .. '\2' .. message)
end

-- Runs one part of the end of a run. If it fails because of a foreign value in a key, the other parts still run.
local function part(...)
  local good, met = pcall(...)
  if not good then failure = type(met) == 'table' and met.err or tostring(met) end
end

local function end_run()
  part(flush_admissions)
  for m in pairs(mail) do part(flush_queue, m) end
  for m in pairs(touched) do part(refill, m) end
  if ended > 0 or rejected > 0 then part(keep_bounds) end
  part(flush_due)
  part(write_counters, K.counts, counts, true)
  part(write_reasons)
  part(write_expiring)
  part(write_ended)
  part(write_counters, K.scopes, scopes, true)
  part(write_counters, K.held, held)
  part(save_waiters)
  has_own_messages = messages[me] ~= nil
  for incarnation, list in pairs(messages) do part(send, incarnation, list) end
end

local function turn(keys, args)
  name_keys(keys[1] .. 'delivery:')
  local time = call('TIME')
  local stored_now = time[1] * 1000 + floor(time[2] / 1000)
  local frozen, ends, shards, tracked_text, held_text, retention_text, kept_text
  frozen, ends, shards, me, node, tracked_text, held_text, retention_text, kept_text = sunpack('sssssssss', args[1])
  if stored_now >= tonumber(ends) then return redis.error_reply('LATE ' .. text(stored_now)) end
  begin_lease(stored_now)
  if redis.pcall('GET', keys[1] .. 'shards') ~= shards then return redis.error_reply('SHARDS are other ones') end
  now = tonumber(frozen) or stored_now
  now_text = text(now)
  tracked_max, held_max, retention, kept_max = tonumber(tracked_text), tonumber(held_text), tonumber(retention_text), tonumber(kept_text)
  retention_step = max(1, min(floor(retention / 64), {{RETENTION_STEP}}))
  now_micros = time[1] * 1000000 + time[2]
  begin_run()
  local batch, at, answers = args[2], 1, {}
  while at <= #batch do
    local step = STEPS[sub(batch, at, at)]
    local format = FORMATS[step[2]]
    if not format then
      format = string.rep('s', step[2])
      FORMATS[step[2]] = format
    end
    local given = { sunpack(format, batch, at + 1) }
    at = given[step[2] + 1]
    number = number + 1
    local good, answer = pcall(step[1], unpack(given, 1, step[2]))
    if not good then answer = '!' .. (type(answer) == 'table' and answer.err or tostring(answer)) end
    answers[number] = answer
  end
  end_run()
  local counted_list = {}
  for name, times in pairs(counted) do counted_list[#counted_list + 1] = name .. '\t' .. text(times) end
  return { now_text, concat(answers, '\1'), concat(own, '\2'), concat(counted_list, '\2'), concat(released, '\2'), has_own_messages and 1 or 0, failure }
end
