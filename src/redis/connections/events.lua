-- Reads the newest events of connections up to `from`, a place: ten times a time in ms. A connect is placed by the
-- sequence of its row, an end by its time. `user` is '' for all users; `at` is the time of now, by which silent
-- connections are lost that no write has ended yet.
local most, bytes = tonumber(max_entries), tonumber(max_bytes)

local function newest(key, first)
  return read('ZRANGE', key, first, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, most + 1, 'WITHSCORES') or {}
end
local function pool(name) return user == '' and K('connections', name) or K('connections', name .. '-of', user) end

local limit = from == '+inf' and at or math.min(tonumber(at), math.floor(tonumber(from) / 10))
local lists = {
  { found = newest(user == '' and K('connections', 'all') or K('connections', 'user_id', user), from), scale = 1, kind = 1 },
  { found = newest(pool('ended'), from == '+inf' and from or math.floor(tonumber(from) / 10)), scale = 10, kind = 2 },
  { found = newest(pool('beats'), limit), scale = 10, kind = 2 },
}

-- Returns the list whose next event is the newest: the greatest place; of one place connects first, then the greatest id.
local function next_list()
  local best, best_place
  for _, list in ipairs(lists) do
    list.i = list.i or 1
    local id = list.found[list.i]
    if id then
      local place = tonumber(list.found[list.i + 1]) * list.scale
      local wins = not best or place > best_place
      if best and place == best_place then wins = list.kind == best.kind and id > best.found[best.i] end
      if wins then best, best_place = list, place end
    end
  end
  return best, best_place
end

local entries, cut = {}, 0
local list, place = next_list()
while list do
  if #entries == most or bytes <= 0 then cut = 1 break end
  local id = list.found[list.i]
  local value = row('connections', id)
  entries[#entries + 1] = { list.kind, id, string.format('%.0f', place), value }
  if type(value) == 'string' then bytes = bytes - #value end
  list.i = list.i + 2
  list, place = next_list()
end
return { foreign, cut, entries }
