--@include ./read-records.lua
-- Lists the mailboxes with an attached client, in the order of their attaches. Skips those whose node has an expired lease,
-- because it is unknown whether their clients are still attached.
local list = user ~= '' and P .. 'attached-of:' .. user or P .. 'attached'
local found, last, examined, cut = {}, after, 0, 0

local function look(m, order)
  local of_user, of_client = match(m, '^([^:]*):([^:]*)$')
  if not of_user or user ~= '' and of_user ~= user or client ~= '' and of_client ~= client then return end
  local w = is_attached(m)
  if not w or w.order ~= order or node ~= '' and w.node ~= node then return end
  found[#found + 1] = { order, of_user, of_client, w.instance, w.node, w.since, read('LLEN', P .. 'box:' .. m) or 0 }
end

while cut == 0 do
  local entries = read('ZRANGE', list, '(' .. last, '(+inf', 'BYSCORE', 'LIMIT', 0, {{BATCH}}, 'WITHSCORES') or {}
  for i = 1, #entries, 2 do
    if examined == tonumber(most) or #found == tonumber(wanted) then
      cut = 1
      break
    end
    examined, last = examined + 1, entries[i + 1]
    look(entries[i], entries[i + 1])
  end
  if #entries < 2 * {{BATCH}} then break end
end
return { foreign, cut, last, examined, found }
