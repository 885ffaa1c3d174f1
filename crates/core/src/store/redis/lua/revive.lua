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
  begin(moves.fields)
  local loc, token = args[1], args[2]
  local raw, r, st, answer = moves.look(loc)
  if not raw then return answer end
  local is_repeated = moves.is_repeated(r, token)
  if is_repeated or st ~= DEAD then return moves.left(loc, st, is_repeated) end
  return moves.make_ready(loc, st, revived(r), token)
end
