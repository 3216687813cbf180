-- Every key ends by itself: one without an end of its own has a lease, which nodes renew (`renew` in store.lua). A lease
-- ends at a midnight of UTC, as no other end does.
local DAY_MS, LEASE_DAYS = 86400000, 31
local lease_day, lease_text
local function begin_lease(at) lease_day, lease_text = math.floor(at / DAY_MS), nil end
local function lease_end()
  if not lease_text then lease_text = string.format('%.0f', (lease_day + LEASE_DAYS) * DAY_MS) end
  return lease_text
end

-- Numbers in the reply of a command that show that the key was there before.
local function was_there(command, reply, ...)
  local _, by = ...
  if command == 'INCR' then return reply > 1 end
  if command == 'HINCRBY' then return reply ~= tonumber(by) end
  return command == 'RPUSH' and reply > select('#', ...)
end

-- Runs a command that may create `key`, which then has a lease.
local function write(command, key, ...)
  if command == 'SET' then return redis.call('SET', key, (...), 'PXAT', lease_end(), select(2, ...)) end
  local reply = redis.call(command, key, ...)
  if reply ~= 0 and not was_there(command, reply, ...) then redis.call('PEXPIREAT', key, lease_end(), 'NX') end
  return reply
end
