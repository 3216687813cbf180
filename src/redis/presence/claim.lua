local key = K('claims', t, id)
local good, claim = pcall(cjson.decode, redis.call('GET', key) or '')
local held = good and claim.until_ms > now
if held and (claim.user_id ~= user or claim.client_id ~= client) then return refuse('identity_conflict') end
local made = { user_id = user, client_id = client, until_ms = now + 2 * ttl, attempt = attempt }
-- Twice the validity, so that an injected clock that lags does not lose the claim.
redis.call('SET', key, cjson.encode(made), 'PX', 4 * ttl)
return 1
