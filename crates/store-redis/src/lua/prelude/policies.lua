-- The version of the topics' policies. It only grows, even after a fail-over that has lost the last ones.
local policies = {}

function policies.version() return call('GET', K .. ':policies:version') end

-- Raises the version that was read, publishes the change, and returns the new one.
function policies.raise_version(last)
  local version = max(tonumber(last or 0) + 1, NOW_US)
  call('SET', K .. ':policies:version', string.format('%.0f', version))
  call('PUBLISH', KEY.policies, 'changed')
  return version
end
