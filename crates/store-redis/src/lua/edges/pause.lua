-- pause: stops delivering a topic. Running deliveries go on.
-- KEYS  shard
-- ARGV  topic, 1 when the limit of topics counts
-- Returns 1, or 0 when it would be one topic too many
function edges.pause(args)
  local field = topics.field(args[1])
  shard.begin(topics.PAUSE_FIELDS, {field})
  local n, _, paused = topics.row(field)
  if args[2] == '1' and n == 0 and paused == 0 and topics.are_full() then return 0 end
  if paused ~= topics.PAUSED then
    topics.set_paused(args[1], topics.PAUSED)
    shard.close()
  end
  return 1
end
