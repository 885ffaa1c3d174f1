-- install: the settings that are fixed at the first start. Allowed when memory is full, so that a process
--   that starts then can drain. An earlier layout that this version reads becomes this version's, because it writes
--   what earlier versions cannot read.
-- KEYS  installation
-- ARGV  layout version, shard count, the earliest layout that this version reads
-- Returns {layout version, shard count} as stored
function edges.install(args)
  local key = K .. ':install'
  local stored = call('HMGET', key, 'layout', 'shards')
  local layout = tonumber(stored[1])
  local is_earlier = layout and layout >= tonumber(args[3]) and layout < tonumber(args[1])
  if not stored[1] or is_earlier and stored[2] == args[2] then
    call('HSET', key, 'layout', args[1], 'shards', args[2])
  end
  return call('HMGET', key, 'layout', 'shards')
end
