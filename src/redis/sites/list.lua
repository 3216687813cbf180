local function record(id)
  local value = read('GETRANGE', K(t, 'site', id), 0, {{CUT_BYTES}} - 1)
  if not value then return {{FOREIGN}}, 0 end
  if value ~= '' then return value, #value end
end
--@include ../table/listing.lua
