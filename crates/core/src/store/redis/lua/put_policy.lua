-- put_policy: gives a topic a policy. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  topic, policy, how many policies there may be
-- Returns 1 it had none, 2 it had another, 0 there are too many and nothing changed

-- Raises the version of the policies, and tells. It only grows, past a fail-over that has lost
-- the last versions too.
function parts.policies_change(last)
  call('SET', K .. ':policies:version', string.format('%.0f', max(tonumber(last or 0) + 1, NOW_US)))
  call('PUBLISH', KEY.policies, 'changed')
end

function edges.put_policy(args)
  tick()
  local key, topic, last = K .. ':policies', args[1], call('GET', K .. ':policies:version')
  local known = call('HEXISTS', key, topic)
  if known == 0 and call('HLEN', key) >= tonumber(args[3]) then return 0 end
  call('HSET', key, topic, args[2])
  parts.policies_change(last)
  return known + 1
end
