-- The policies of topics. Their version only grows, even after a fail-over that has lost the last versions.
local function version() return call('GET', K .. ':policies:version') end

-- Raises the version that was read, publishes the change, and returns the new version.
local function raise_version(last)
  local raised = max(tonumber(last or 0) + 1, NOW_US)
  call('SET', K .. ':policies:version', string.format('%.0f', raised))
  call('PUBLISH', KEY.policies, 'changed')
  return raised
end

-- put_policy: gives a topic a policy.
-- KEYS  installation
-- ARGV  topic, policy, how many policies there may be, the policy that it must have now or '' for any or none
-- Returns {1 if it replaces another, else 0; the version}, {} if there are too many, or {0} if the topic
--   has not the policy that it must have
function edges.put_policy(args)
  tick()
  local key, topic, last = K .. ':policies', args[1], version()
  local known = call('HEXISTS', key, topic)
  if args[4] ~= '' and call('HGET', key, topic) ~= args[4] then return {0} end
  if known == 0 and call('HLEN', key) >= tonumber(args[3]) then return {} end
  call('HSET', key, topic, args[2])
  return {known, raise_version(last)}
end

-- delete_policy: removes the policy of a topic.
-- KEYS  installation
-- ARGV  topic
-- Returns the version, or 0 if the topic had no policy
function edges.delete_policy(args)
  tick()
  local last = version()
  if call('HDEL', K .. ':policies', args[1]) == 0 then return 0 end
  return raise_version(last)
end
