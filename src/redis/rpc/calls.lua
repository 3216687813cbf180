-- Writes may arrive twice, because a client sends them again. An opening is known by its attempt,
-- `calls:over:<attempt>` once it has ended; a reply by its name, `calls:by:<id>`, or `calls:dropped:<name>` where it
-- was dropped. An id may be opened again before the reply to it is read: `calls:reply-to:<id>` is the attempt that the
-- reply belongs to.
--
-- `calls:counts` counts calls by outcome since `since`. A call is counted when its row is inserted and when it is
-- deleted, so repeated writes do not count twice: every opened call has either ended or is pending.

--@include ../store/tables.lua

-- How long the names of openings and replies are remembered, in ms: longer than any sender retries.
local NAMED_MS = 30000
-- Calls past their deadline that one write removes at most: more than it adds.
local SWEEP_CALLS = 16

local t = 'calls'
local function tally(what)
  -- If another type is stored there, calls work all the same.
  redis.pcall('HSETNX', K(t, 'counts'), 'since', string.format('%.0f', now))
  redis.pcall('HINCRBY', K(t, 'counts'), what, 1)
end

local function end_call(id, how)
  drop(t, id)
  tally(how)
end

local function sweep_calls()
  local due = redis.call('ZRANGE', K(t, 'leaves'), '-inf', now, 'BYSCORE', 'LIMIT', 0, SWEEP_CALLS)
  for i = 1, #due do end_call(due[i], 'timed_out') end
end

local function drop_reply(name, why)
  if redis.call('SET', K(t, 'dropped', name), 1, 'NX', 'PX', NAMED_MS) then tally(why) end
  return why
end
