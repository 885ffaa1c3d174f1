-- watch: publishes the events of the shard for a while.
-- KEYS  shard
-- ARGV  for how long (ms)
-- Returns since when they are published (ms)
-- Uses events, shard.
function scripts.watch(args)
  shard.begin()
  local till = NOW + tonumber(args[1])
  if not events.is_watched then shard.set('watched_since', NOW) end
  if till > fields.watched then shard.set('watched', till) end
  shard.close()
  return fields.watched_since
end
