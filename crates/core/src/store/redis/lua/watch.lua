-- watch: what happens in the shard is told for a while. No edge.
-- KEYS  shard
-- ARGV  for how long (ms)
-- Returns 1 when it was told until now, else 0
function edges.watch(args)
  begin({})
  local was_told, till = events.on, NOW + tonumber(args[1])
  if till > shard.watched then set(events.FIELD, till) end
  close()
  return was_told and 1 or 0
end
