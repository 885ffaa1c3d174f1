-- revive: dead -> ready, due now; failures and lost leases are counted anew.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns what reschedule returns

function edges.revive(args)
  local loc, token = args[1], args[2]
  local _, r, st, answer = moves.start(loc, token)
  if answer then return answer end
  if st ~= DEAD then return moves.left(loc, st, false) end
  return moves.make_ready(loc, st, moves.revived(r), token)
end
