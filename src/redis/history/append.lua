--@include ../store/fair-share.lua
--@include ./history.lua
--@include ./retain.lua

return retain()
