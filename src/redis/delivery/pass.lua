-- The pass of a node over a shard, at least once a second. It renews the lease of the node, reads its messages, and does the due
-- work of the whole shard: deadlines, dead nodes and retention.
-- Inputs: the step `pass` (steps.ts). Outputs: its answer, the lease, recovered and expired commands.
-- Publishes: what the functions of mailbox.lua and ending.lua publish; also to the calling node itself by its inbox.

-- Recovers a command from a dead incarnation: its attempt ends, and the client that is attached now gets the next one.
local function recover(c, incarnation)
  if (c.state ~= 'a' and c.state ~= 'h' and c.state ~= 'p') or c.incarnation ~= incarnation then return end
  if c.state ~= 'p' then
    free_place(c)
    c.outcome = 'timed_out'
    note(c, 'T', '\tlease_expired')
    count('other attempt_timed_out')
    if tonumber(c.attempts) >= tonumber(c.max_attempts) then return finish(c, 'f', 'attempts_exhausted', now_text, '') end
    note(c, 'R', '\tlease_expired')
    count('recovery lease_expired')
  end
  place(c)
end

local function sweep(incarnation, budget)
  local phase, at = match(call('HGET', K.sweeps, incarnation) or 'c 0', '^(%l) (%d+)$')
  if phase == 'c' then
    local newest = newest_number()
    at = max(tonumber(at), tonumber(call('GET', K.first_chunk) or 0) * {{CHUNK}} + 1)
    local chunks = 0
    while at <= newest and budget > 0 and chunks < {{CHUNKS_A_RUN}} do
      local k = chunk_of(at)
      local found = find(column(k), '[ahp]', offset_of(at, k) + 1)
      if found then
        at = k * {{CHUNK}} + found
        budget = budget - 1
        local ref = ref_at(at)
        local c = read_own(ref, at)
        if c then
          if tonumber(c.deadline_at) <= now then finish(c, 'x', 'deadline_passed', c.deadline_at, '') else recover(c, incarnation) end
        end
        at = at + 1
      else
        at = (k + 1) * {{CHUNK}} + 1
        chunks = chunks + 1
      end
    end
    if at <= newest then
      write('HSET', K.sweeps, incarnation, 'c ' .. text(at))
      return budget, true
    end
    at = '0'
  end
  local reply = call('HSCAN', K.waiters, at, 'COUNT', '200')
  for i = 1, #reply[2], 2 do
    local m = reply[2][i]
    local good, w = pcall(waiter_of, m)
    if good and w and w.incarnation == incarnation then remove_waiter(m, w) end
  end
  if reply[1] == '0' then
    call('HDEL', K.leases, incarnation)
    call('HDEL', K.sweeps, incarnation)
    call('HDEL', K.last_message, incarnation)
    call('DEL', K.inbox_of .. incarnation)
    return budget - 10, false
  end
  write('HSET', K.sweeps, incarnation, 'w ' .. reply[1])
  return budget - 10, true
end

-- Returns the messages after the id `heard`, or nil if the store lost some. Each message has the id of the one before, so a
-- broken chain shows a loss.
local function messages_after(heard)
  local entries = call('XRANGE', K.inbox_of .. me, heard == '0-0' and '-' or '(' .. heard, '+', 'COUNT', '{{MESSAGES_A_PASS}}')
  local before, found = heard, {}
  for i = 1, #entries do
    local id, fields = entries[i][1], entries[i][2]
    if fields[2] ~= before then return nil end
    before = id
    found[i] = id .. '\2' .. fields[4]
  end
  if #entries < {{MESSAGES_A_PASS}} and before ~= (call('HGET', K.last_message, me) or '0-0') then return nil end
  return found
end

local function remove_idle_scopes(after)
  local entries = call('ZRANGE', K.scope_order, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', '0', '{{SCOPES_A_PASS}}', 'WITHSCORES')
  for i = 1, #entries, 2 do
    local scope = entries[i]
    if tonumber(call('HGET', K.scopes, scope) or 0) + (scopes[scope] or 0) <= 0 and not scopes[scope] then
      call('HDEL', K.scopes, scope)
      call('HDEL', K.capacities, scope)
      call('ZREM', K.scope_order, scope)
      scope_now[scope] = nil
    end
  end
  return #entries == 2 * {{SCOPES_A_PASS}} and entries[#entries] or '0'
end

-- Runs a pass. `suspects` are leases that this node has seen expired for a while, as `incarnation until,...`: if one has not
-- been renewed since, its incarnation is declared dead. A clock step alone therefore declares no node dead. `former` is the
-- previous incarnation of this node if it restarted under a new one, or ''.
-- Returns the state of the lease and the messages, or a single token if the node must restart under a new incarnation.
local function pass(heard, suspects, scope_after, former)
  flush_admissions()
  by_message = true
  if former ~= '' then
    write('HSET', K.leases, former, 'dead')
    call('HDEL', K.sweeps, former)
    leases[former] = 'dead'
  end
  local lease = lease_of(me)
  local is_known = heard ~= ''
  local found = is_known and lease and lease ~= 'dead' and messages_after(heard)
  if is_known and not found then return 'restart' end
  local is_lapsed = is_known and tonumber(lease) <= now
  leases[me] = text(now + {{LEASE}})
  write('HSET', K.leases, me, leases[me])
  if is_known then call('XTRIM', K.inbox_of .. me, 'MINID', heard) end

  local budget = expire_due({{COMMANDS_A_PASS}}, true)
  local more, seen = budget <= 0, {}
  local all = call('HGETALL', K.leases)
  for i = 1, #all, 2 do
    local incarnation, until_ms = all[i], all[i + 1]
    if until_ms ~= 'dead' and incarnation ~= me and (tonumber(until_ms) or 0) <= now then
      local entry = incarnation .. ' ' .. until_ms .. ','
      if find(suspects, entry, 1, true) then
        write('HSET', K.leases, incarnation, 'dead')
        leases[incarnation], until_ms = 'dead', 'dead'
      else
        seen[#seen + 1] = entry
      end
    end
    if until_ms == 'dead' and budget > 0 then
      local is_left
      budget, is_left = sweep(incarnation, budget)
      more = more or is_left
    end
  end
  if tidy_due() then more = true end
  pcall(trim_due)
  local scope_next = remove_idle_scopes(scope_after)
  local first = call('ZRANGE', K.due, '0', '0', 'WITHSCORES')
  local next_in = first[2] and max(0, tonumber(first[2]) - now) or -1
  if found and #found == {{MESSAGES_A_PASS}} then more = true end
  return (is_lapsed and 'lapsed' or 'ok') .. '\3' .. (more and '1' or '') .. '\3' .. text(next_in) .. '\3' .. scope_next .. '\3' .. concat(seen) .. '\3' .. (found and concat(found, '\3') or '')
end
