-- watch: what happens in the shard is told for a while. No edge.
-- KEYS  shard
-- ARGV  for how long (ms)
-- Returns since when it is told, in ms
function edges.watch(args)
  begin({'watched_since'})
  local till = NOW + tonumber(args[1])
  if not events.on then set('watched_since', NOW) end
  if till > shard.watched then set(events.FIELD, till) end
  close()
  return shard.watched_since
end
