-- revivals: those that go on, and those that ended not long ago. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  id (8 bytes), '' for all
-- Returns {id, revival, ...}
function edges.revivals(args)
  if args[1] == '' then return call('HGETALL', revivals.all()) end
  local raw = revivals.get(args[1])
  return raw and {args[1], raw} or {}
end
