-- What `defineReadScript` puts before every script that only reads.

--@include ../store/keys.lua

-- Maximum number of keys of a wrong type that one answer names.
local FOREIGN_MAX = 100

local foreign = {}
local function note(key) if #foreign < FOREIGN_MAX then foreign[#foreign + 1] = key end end
-- Returns the reply of a command; nil, and the key noted, where the key holds another type.
local function read(name, key, ...)
  local reply = redis.pcall(name, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then error(reply) end
  note(key)
  return nil
end
-- Returns a row; false for none, {{FOREIGN}} for another type. A row that is too long to be one of ours is cut: the
-- reader sees that, and the rest is not sent.
local function row(t, id)
  local value = read('GETRANGE', K(t, 'row', id), 0, {{CUT_BYTES}} - 1)
  if not value then return {{FOREIGN}} end
  return value ~= '' and value
end
