-- revive: dead -> ready, due now. Failures and lost leases start from zero.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns what reschedule returns
function edges.revive(args)
  local loc, token = args[1], args[2]
  local _, s, code, answer = moves.begin(loc, token)
  if answer then return answer end
  if code ~= DEAD then return moves.unchanged(loc, code, false) end
  return moves.make_ready(loc, code, state.revived(s), token)
end
