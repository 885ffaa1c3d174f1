-- resume: the end of a pause. Lanes that were parked get their turns again, so many with each call:
--   until the last of them has, the topic counts as paused, and no more are parked.
-- KEYS  shard
-- ARGV  topic, how many lanes at most
-- Returns 0 for a topic that is not known, 1 when it is done, 2 when there are more lanes
function edges.resume(args)
  local field = topics.field(args[1])
  begin({'paused', 'pauses', 'topics', 'next'}, {field})
  local _, _, paused = topics.row(field)
  if paused == 0 then return rows[field] and 1 or 0 end
  local is_more = topics.unpark(args[1], tonumber(args[2]))
  topics.set_paused(args[1], is_more and RESUMING or 0)
  close()
  return is_more and 2 or 1
end
