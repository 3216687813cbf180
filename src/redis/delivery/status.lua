--@include ./read-records.lua
-- Returns the record of a command without its payload: '' if the key is missing, nil if the value is not the record of this
-- command.
local key = P .. 'command:' .. ref
local stored = read('GETRANGE', key, 0, {{RECORD_BYTES}})
if stored == '' then return { foreign, '' } end
local good, _, seq = pcall(struct.unpack, 'ss', stored or '')
seq = good and tonumber(seq)
local is_own = seq and is_instant(seq) and ref_at(seq) == ref
return { foreign, is_own and stored or false }
