-- begin_redrive: begins to revive many dead jobs.
-- KEYS  installation
-- ARGV  id (8 bytes), what it is to do, how many may run at once, how long (ms) and how many of the ended
--   ones are kept
-- Returns the redrive, begun now or by the same id before; '' when too many run
function edges.begin_redrive(args)
  tick()
  local id = args[1]
  local known = redrives.get(id)
  if known then return known end
  if call('ZCARD', redrives.running()) >= tonumber(args[3]) then return '' end
  local redrive = char(redrives.RUNNING) .. six(NOW) .. NO_TIME .. redrives.NOT_KNOWN .. NO_LEASE .. args[2]
  redrives.put(id, redrive)
  call('ZADD', redrives.running(), 0, id)
  redrives.forget(tonumber(args[4]), tonumber(args[5]))
  publish('revival')
  return redrive
end
