-- revive: dead -> ready, due now; failures and lost leases are counted anew.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns what reschedule returns

-- No failure, no lost lease, no reason; the last failed attempt stays to be seen.
local function revived(r)
  return char(DELAYED, 0) .. sub(r, 3, 12) .. string.rep('\0', 5) .. sub(r, 18, 66) .. '\0'
    .. sub(r, RUN + 1, RUN + byte(r, 66))
end

function edges.revive(args)
  local loc, token = args[1], args[2]
  local _, r, st, answer = moves.start(loc, token)
  if answer then return answer end
  if st ~= DEAD then return moves.left(loc, st, false) end
  return moves.make_ready(loc, st, revived(r), token)
end
