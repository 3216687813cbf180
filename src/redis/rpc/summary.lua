-- Calls that are read to find the oldest. It is the first one, unless that row is invalid.
local OLDEST_MAX = 4

local t = 'calls'
local counts = read('HMGET', K(t, 'counts'), 'since', {{COUNTERS}}) or {}
local pending = read('ZCOUNT', K(t, 'leaves'), '(' .. at, '+inf') or 0
local overdue = read('ZCOUNT', K(t, 'leaves'), '-inf', at) or 0
local ids, rows = read('ZRANGE', K(t, 'all'), 0, OLDEST_MAX - 1) or {}, {}
for i, id in ipairs(ids) do rows[i] = row(t, id) end
return { foreign, counts, pending, overdue, ids, rows }
