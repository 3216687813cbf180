--@include ../store/tables.lua

for _, id in ipairs(gone) do drop('subscriptions', id) end
return 1
