--@include ./topic.lua

local found = {}
for i = 1, #known, 3 do
  local _, epoch, seq, spoilt = standing(known[i], known[i + 1], known[i + 2], fresh .. '-' .. i)
  found[#found + 1] = epoch
  found[#found + 1] = seq
  found[#found + 1] = spoilt
end
return found
