-- The shared configuration, above all policies of topics: stores and removes entries. Their version only grows, even
-- after a failover that has lost the last versions. The topics whose policy asks for metrics of their own are a set
-- beside them, because their number is limited.
local function with_metrics() return K .. ':policies:metrics' end
local function version() return call('GET', K .. ':policies:version') end

-- Stores a version above `last`, publishes the change, and returns the version.
local function raise_version(last)
  local raised = max(tonumber(last or 0) + 1, NOW_US)
  call('SET', K .. ':policies:version', string.format('%.0f', raised))
  call('PUBLISH', KEY.policies, 'changed')
  return raised
end

-- put_policy: stores the policy of a topic, or another entry.
-- KEYS  installation
-- ARGV  topic, policy, the policy that it must have now or '' for none, how many policies there may be, 1 if it asks
--   for metrics, how many may do so
-- Returns {1 if it replaces another, else 0; the version}, {} if there are too many policies, {0} if the topic does
--   not have the policy that it must have, or {1} if too many topics have metrics
function scripts.put_policy(args)
  tick()
  local key, topic, last = K .. ':policies', args[1], version()
  local stored = call('HGET', key, topic) or ''
  if stored ~= args[3] then return {0} end
  local known = stored == '' and 0 or 1
  if known == 0 and call('HLEN', key) >= tonumber(args[4]) then return {} end
  local wants = args[5] == '1'
  local has = call('SISMEMBER', with_metrics(), topic) == 1
  if wants and not has and call('SCARD', with_metrics()) >= tonumber(args[6]) then return {1} end
  call('HSET', key, topic, args[2])
  if wants and not has then call('SADD', with_metrics(), topic) end
  if has and not wants then call('SREM', with_metrics(), topic) end
  return {known, raise_version(last)}
end

-- delete_policy: removes the policy of a topic.
-- KEYS  installation
-- ARGV  topic
-- Returns the version, or 0 if the topic had no policy
function scripts.delete_policy(args)
  tick()
  local last = version()
  if call('HDEL', K .. ':policies', args[1]) == 0 then return 0 end
  call('SREM', with_metrics(), args[1])
  return raise_version(last)
end
