--@include ./calls.lua

drop_reply(name, 'late')
