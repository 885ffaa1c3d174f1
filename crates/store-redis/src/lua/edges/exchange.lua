-- exchange: settle, and then reserve, in one call. The reserve can take what the settle makes ready.
-- KEYS  shard
-- ARGV  those of reserve; those of settle; how many those of reserve are
-- Returns {what settle returns, what reserve returns}
local EXCHANGE = union(outcomes.FIELDS, grants.FIELDS)

function edges.exchange(args)
  local n = tonumber(table.remove(args))
  local names, whole, over, from = outcomes.settle_args(args, n)
  shard.begin(EXCHANGE, names)
  local settled = outcomes.settle(args, n, whole, over, from)
  -- The settle has written its changes; what it has read of jobs is older.
  jobs.discard()
  local reserved = grants.reserve(args, n)
  shard.close()
  return {settled, reserved}
end
