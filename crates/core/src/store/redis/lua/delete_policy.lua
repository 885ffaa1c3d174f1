-- delete_policy: forgets the policy of a topic. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  topic
-- Returns 1 it had one, 0 it had none
function edges.delete_policy(args)
  tick()
  local last = call('GET', K .. ':policies:version')
  if call('HDEL', K .. ':policies', args[1]) == 0 then return 0 end
  parts.policies_change(last)
  return 1
end
