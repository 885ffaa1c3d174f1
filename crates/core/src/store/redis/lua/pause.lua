-- pause: nothing of a topic is handed over any more. What is being handed over goes on.
-- KEYS  shard
-- ARGV  topic
-- Returns 1
function edges.pause(args)
  local field = topics.field(args[1])
  begin({'paused', 'topics', 'next'}, {field})
  local _, _, paused = topics.row(field)
  if paused ~= PAUSED then
    topics.set_paused(args[1], PAUSED)
    close()
  end
  return 1
end
