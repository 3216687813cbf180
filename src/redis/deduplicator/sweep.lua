--@include ../store/fair-share.lua
--@include ./claims.lua

return sweep_claims(now - ttl) == SWEEP_CLAIMS and 1 or 0
