-- `counts`: what became of calls since `since`. A call is counted where it enters and where it leaves, and so however
-- often what put it there or took it away arrives: what has been opened has ended or is there.
--@include ../store/tables.lua

-- How long an opening and a reply are known by their names, in ms: longer than any sender retries.
local NAMED_MS = 30000
-- Calls past their deadline that one write removes at most: more than it adds.
local SWEEP_CALLS = 16

local t = 'calls'
local function tally(what)
  -- What somebody else has written there is no reason to refuse a call.
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
