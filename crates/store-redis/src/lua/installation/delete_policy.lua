-- delete_policy: removes the policy of a topic.
-- KEYS  installation
-- ARGV  topic
-- Returns the version, or 0 where the topic had no policy
function edges.delete_policy(args)
  tick()
  local last = policies.version()
  if call('HDEL', K .. ':policies', args[1]) == 0 then return 0 end
  return policies.raise_version(last)
end
