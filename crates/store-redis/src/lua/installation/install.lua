-- install: the settings that are fixed at the first start. Allowed when memory is full, so that a process
--   that starts then can drain.
-- KEYS  installation
-- ARGV  layout version, shard count
-- Returns {layout version, shard count} as stored
function edges.install(args)
  local key = K .. ':install'
  if call('EXISTS', key) == 0 then call('HSET', key, 'layout', args[1], 'shards', args[2]) end
  return call('HMGET', key, 'layout', 'shards')
end
