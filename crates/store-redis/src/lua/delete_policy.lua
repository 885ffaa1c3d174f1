-- delete_policy: forgets the policy of a topic. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  topic
-- Returns the version, or 0 where it had none
function edges.delete_policy(args)
  tick()
  local last = call('GET', K .. ':policies:version')
  if call('HDEL', K .. ':policies', args[1]) == 0 then return 0 end
  return parts.policies_change(last)
end
