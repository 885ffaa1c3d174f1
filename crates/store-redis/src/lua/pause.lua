-- pause: nothing of a topic is handed over any more. What is being handed over goes on.
-- KEYS  shard
-- ARGV  topic, 1 when it is not to be one topic too many
-- Returns 1, or 0 when it would be
function edges.pause(args)
  local field = topics.field(args[1])
  begin({'paused', 'pauses', 'topics', 'next'}, {field})
  local lanes, _, paused = topics.row(field)
  if args[2] == '1' and lanes == 0 and paused == 0 and topics.are_full() then return 0 end
  if paused ~= PAUSED then
    topics.set_paused(args[1], PAUSED)
    close()
  end
  return 1
end
