-- begin_revival: many dead jobs are to be revived. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  id (8 bytes), what it is to do, how many may go on at once, how long (ms) and how many
--   of those that ended are kept
-- Returns the revival, now or by the same id before; '' when too many go on
function edges.begin_revival(args)
  tick()
  local id = args[1]
  local known = revivals.get(id)
  if known then return known end
  if call('ZCARD', revivals.running()) >= tonumber(args[3]) then return '' end
  local raw = char(revivals.RUNNING) .. six(NOW) .. NO_TIME .. revivals.NOT_KNOWN .. NO_LEASE .. args[2]
  revivals.put(id, raw)
  call('ZADD', revivals.running(), 0, id)
  revivals.forget(tonumber(args[4]), tonumber(args[5]))
  tell('revival')
  return raw
end
