-- run: delayed -> ready, due now. A job that is ready or reserved stays as it is.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns what reschedule returns; the job state may be ''
function edges.run(args)
  local loc, token = args[1], args[2]
  local _, s, code, answer = moves.begin(loc, token)
  if answer then return answer end
  if code ~= DELAYED then return moves.unchanged(loc, code, code == READY or code == RESERVED) end
  return moves.make_ready(loc, code, s or state.NEW, token)
end
