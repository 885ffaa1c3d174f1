-- resume: delivers a topic again. Each call gives some parked lanes their turns back. Until the last one
--   has its turn the topic counts as paused, and no more lanes are parked.
-- KEYS  shard
-- ARGV  topic, how many lanes at most
-- Returns 0 for a topic that is not known, 1 when it is done, 2 when there are more lanes
function edges.resume(args)
  local field = topics.field(args[1])
  shard.begin(topics.PAUSE_FIELDS, {field})
  local _, _, paused = topics.row(field)
  if paused == 0 then return rows[field] and 1 or 0 end
  local has_more = topics.unpark(args[1], tonumber(args[2]))
  topics.set_paused(args[1], has_more and topics.RESUMING or 0)
  shard.close()
  return has_more and 2 or 1
end
