#!lua flags=allow-oom
-- install: what is fixed at the first start. Not an edge; knows no shard. Allowed when
--   memory is full, so that who comes up then can drain.
-- KEYS  installation
-- ARGV  layout version, shard count
-- Returns {layout version, shard count} as stored
local key = KEYS[1] .. ':install'
if redis.call('EXISTS', key) == 0 then
  redis.call('HSET', key, 'layout', ARGV[1], 'shards', ARGV[2])
end
return redis.call('HMGET', key, 'layout', 'shards')
