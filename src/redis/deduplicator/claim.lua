--@include ../store/fair-share.lua
--@include ./claims.lua
--@include ../store/once.lua

return once(attempt, function() return claim(user, message, tonumber(ttl), tonumber(capacity)) end)
