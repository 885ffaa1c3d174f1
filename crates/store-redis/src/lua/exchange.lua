-- exchange: settle, and then reserve, in one call. What the settle makes ready can be taken.
-- KEYS  shard
-- ARGV  those of reserve; those of settle; how many those of reserve are
-- Returns {what settle returns, what reserve returns}
local EXCHANGE = {unpack(parts.SETTLE)}
for _, field in ipairs(parts.RESERVE) do
  local is_there = false
  for _, known in ipairs(parts.SETTLE) do is_there = is_there or known == field end
  if not is_there then EXCHANGE[#EXCHANGE + 1] = field end
end

function edges.exchange(args)
  local n = tonumber(table.remove(args))
  local lanes, over, from = parts.told(args, n)
  begin(EXCHANGE, lanes)
  local settled = parts.settle(args, n, over, from)
  -- The settle has written all of its own; what it knew of jobs is as it was before that.
  forget_loaded()
  -- Where it fails, what the settle has moved is counted all the same.
  local is_done, reserved = pcall(parts.reserve, args, n)
  close()
  if not is_done then error(reserved, 0) end
  return {settled, reserved}
end
