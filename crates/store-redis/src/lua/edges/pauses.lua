-- Pauses of topics.

-- pause: stops delivering a topic. Deliveries that have begun go on.
-- KEYS  shard
-- ARGV  topic, 1 if limits of topics apply, the limits of its tenant (4 bytes each) or ''
-- Returns 1; 0 if it would be one topic too many, 2 if one too many of its tenant
function edges.pause(args)
  local field = topics.field(args[1])
  shard.begin(topics.PAUSE_FIELDS, {field})
  local n, _, paused = topics.row(field)
  local limit = args[2] == '1' and n == 0 and paused == 0 and topics.pause_limit(args[1], args[3])
  if limit then return limit end
  if paused ~= topics.PAUSED then
    topics.set_paused(args[1], topics.PAUSED)
    shard.close()
  end
  return 1
end

-- resume: delivers a topic again. Each call gives some parked lanes their turns back. The topic counts as
--   paused until the last lane has its turn, but no more lanes are parked.
-- KEYS  shard
-- ARGV  topic, how many lanes at most
-- Returns 0 for an unknown topic, 1 if it is resumed, 2 if there are more lanes
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
