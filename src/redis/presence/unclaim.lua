local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then redis.call('DEL', key) end
return 1
