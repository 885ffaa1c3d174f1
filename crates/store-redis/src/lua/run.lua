-- run: delayed -> ready, due now. A job that is ready or being handed over stays as it is.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns what reschedule returns; the run may be ''
function edges.run(args)
  local loc, token = args[1], args[2]
  local _, r, st, answer = moves.start(loc, token)
  if answer then return answer end
  if st ~= DELAYED then return moves.left(loc, st, st == READY or st == RESERVED) end
  return moves.make_ready(loc, st, r or moves.untried, token)
end
