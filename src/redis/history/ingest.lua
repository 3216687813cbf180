--@include ../store/fair-share.lua
--@include ../deduplicator/claims.lua
--@include ./history.lua
--@include ./retain.lua

local answer = retain()
if answer[1] ~= {{GIVEN_UP}} and not is_again then
  claim(user, id, tonumber(ttl), tonumber(capacity))
end
return answer
