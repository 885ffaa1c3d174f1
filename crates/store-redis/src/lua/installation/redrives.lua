-- redrives: the running redrives, and those that ended not long ago.
-- KEYS  installation
-- ARGV  id (8 bytes), '' for all
-- Returns {id, redrive, ...}
function edges.redrives(args)
  if args[1] == '' then return call('HGETALL', redrives.all()) end
  local redrive = redrives.get(args[1])
  return redrive and {args[1], redrive} or {}
end
