-- Pauses and resumes topics and destinations, and marks limited destinations.
-- Uses destinations, paused_lanes, shard, topics.

-- The fields that resuming reads.

-- pause: stops delivering a topic. Deliveries that have begun go on.
-- KEYS  shard
-- ARGV  topic, 1 if limits of topics apply, the limits of its tenant (4 bytes each) or ''
-- Returns 1; 0 if it would be one topic too many, 2 if one too many of its tenant
function scripts.pause(args)
  local field = topics.field(args[1])
  shard.begin({field})
  local n, _, paused = topics.row(field)
  local limit = args[2] == '1' and n == 0 and paused == 0 and topics.pause_limit(args[1], args[3])
  if limit then return limit end
  if paused ~= topics.PAUSED then
    topics.set_paused(args[1], topics.PAUSED)
    shard.close()
  end
  return 1
end

-- resume: delivers a topic again. Each call gives some of its paused lanes their turns back. The topic counts as
--   paused until the last lane has its turn, but no more lanes are set aside.
-- KEYS  shard
-- ARGV  topic, how many lanes at most
-- Returns 0 for an unknown topic, 1 if it is resumed, 2 if there are more lanes
function scripts.resume(args)
  local field = topics.field(args[1])
  shard.begin({field})
  local _, _, paused = topics.row(field)
  if paused == 0 then return rows[field] and 1 or 0 end
  local has_more = paused_lanes.resume(args[1], tonumber(args[2]))
  topics.set_paused(args[1], has_more and topics.RESUMING or 0)
  shard.close()
  return has_more and 2 or 1
end

-- pause_destination: makes no callback to a destination. Callbacks that have begun go on.
-- KEYS  shard
-- ARGV  name of the pause, what the names of its tenant's pauses begin with or '', how many pauses there may be in all,
--   how many of a tenant
-- Returns 1; 0 if it would be one pause too many, 2 if one too many of its tenant
function scripts.pause_destination(args)
  shard.begin()
  local state = destinations.state(args[1])
  local limit = not state and destinations.limit(KEY.destinations, args[2], tonumber(args[3]), tonumber(args[4]))
  if limit then return limit end
  if state ~= destinations.PAUSED or fields.paused_hosts == 0 then
    destinations.set(args[1], destinations.PAUSED)
    shard.close()
  end
  return 1
end

-- resume_destination: makes callbacks to a destination again. Each call gives some of its paused lanes their turns back.
--   The destination counts as paused until the last lane has its turn, but no more lanes are set aside.
-- KEYS  shard
-- ARGV  name of the pause, how many lanes at most
-- Returns 0 if it was not paused, 1 if it is resumed, 2 if there are more lanes
function scripts.resume_destination(args)
  shard.begin()
  if not destinations.state(args[1]) then return 0 end
  local has_more = paused_lanes.resume('!' .. args[1], tonumber(args[2]))
  destinations.set(args[1], has_more and destinations.RESUMING or nil)
  shard.close()
  return has_more and 2 or 1
end

-- mark_limit: from here on only notifiers with places get jobs of a destination.
-- KEYS  shard
-- ARGV  name of the limit
-- Returns 1
function scripts.mark_limit(args)
  shard.begin()
  destinations.mark(args[1], destinations.LIMITED)
  shard.close()
  return 1
end

-- unmark_limit: all notifiers get jobs of a destination again. Each call gives some of its lanes their turns back.
-- KEYS  shard
-- ARGV  name of the limit, what the call before returned or '', how many lanes to look at
-- Returns what the next call is given; '' after the last lane
function scripts.unmark_limit(args)
  shard.begin()
  destinations.mark(args[1], destinations.ENDING)
  local last = paused_lanes.sweep(args[2], tonumber(args[3]))
  if not last then destinations.mark(args[1], nil) end
  shard.close()
  return last or ''
end
