-- The first part of every read-only script (see `defineReadScript`).

--@include ../store/keys.lua

-- Maximum number of keys of a wrong type that one reply lists.
local FOREIGN_MAX = 100

local foreign = {}
local function note(key) if #foreign < FOREIGN_MAX then foreign[#foreign + 1] = key end end
-- Returns the reply of a command. If the key has the wrong type, returns nil and notes the key.
local function read(name, key, ...)
  local reply = redis.pcall(name, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  -- The store does not name a command that this user may not send.
  if string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then error({ err = reply.err .. ': ' .. name }) end
  note(key)
  return nil
end
-- Returns a row; false if there is none, {{FOREIGN}} if it has the wrong type. A row that is too long to be valid is
-- cut: the reader detects that, and the rest is not sent.
local function row(t, id)
  local value = read('GETRANGE', K(t, 'row', id), 0, {{CUT_BYTES}} - 1)
  if not value then return {{FOREIGN}} end
  return value ~= '' and value
end
