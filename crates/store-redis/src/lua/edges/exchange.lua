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
  -- Where the reserve fails, what the settle has moved must still be counted.
  local is_done, reserved = pcall(grants.reserve, args, n)
  shard.close()
  if not is_done then error(reserved, 0) end
  return {settled, reserved}
end
