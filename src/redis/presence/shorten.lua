local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
if good and claim.attempt == attempt then
  claim.until_ms = tonumber(until_ms)
  redis.call('SET', key, cjson.encode(claim), 'KEEPTTL')
end
return 1
