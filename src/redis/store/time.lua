-- The clock of the store that holds the shard. A script, because a client sends a bare `TIME` to a node of its choice.
return redis.call('TIME')
