-- Keys inside a script. K('row', id) joins raw ids under KEYS[1], the prefix of the shard, as `keyOf` does in keys.ts.

-- Encoding an id costs more than most commands, and the same id comes again.
local encoded = {}
local function encode(part)
  local known = encoded[part]
  if known then return known end
  -- Most ids need no encoding, and the search costs a tenth of the replacement.
  if not string.find(part, '[^%w_-]') then known = part
  else known = string.gsub(part, '[^%w_-]', function(c) return string.format('%%%02X', string.byte(c)) end) end
  encoded[part] = known
  return known
end
local function K(...)
  local parts = {...}
  for i = 1, #parts do parts[i] = encode(parts[i]) end
  return KEYS[1] .. table.concat(parts, ':')
end
-- Joins ids once where several keys end in the same ones: ended('delivery', 'mailbox', ids(user, client)).
local function ids(first, second) return encode(first) .. ':' .. encode(second) end
local function ended(t, name, last) return KEYS[1] .. t .. ':' .. name .. ':' .. last end
