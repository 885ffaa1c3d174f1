-- put_policy: gives a topic a policy. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  topic, policy, how many policies there may be
-- Returns {1 when it had another, else 0, the version}, or {} when there are too many

-- Raises the version of the policies, tells, and returns it. It only grows, past a fail-over that
-- has lost the last versions too.
function parts.policies_change(last)
  local version = max(tonumber(last or 0) + 1, NOW_US)
  call('SET', K .. ':policies:version', string.format('%.0f', version))
  call('PUBLISH', KEY.policies, 'changed')
  return version
end

function edges.put_policy(args)
  tick()
  local key, topic, last = K .. ':policies', args[1], call('GET', K .. ':policies:version')
  local known = call('HEXISTS', key, topic)
  if known == 0 and call('HLEN', key) >= tonumber(args[3]) then return {} end
  call('HSET', key, topic, args[2])
  return {known, parts.policies_change(last)}
end
