redis.call('ZREM', K('spilled', 'loose'), unpack(refs))
return 1
