-- put_policy: gives a topic a policy.
-- KEYS  installation
-- ARGV  topic, policy, how many policies there may be
-- Returns {1 when it replaces another, else 0, the version}, or {} when there are too many
function edges.put_policy(args)
  tick()
  local key, topic, last = K .. ':policies', args[1], policies.version()
  local known = call('HEXISTS', key, topic)
  if known == 0 and call('HLEN', key) >= tonumber(args[3]) then return {} end
  call('HSET', key, topic, args[2])
  return {known, policies.raise_version(last)}
end
