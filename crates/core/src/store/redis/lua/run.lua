-- run: delayed -> ready, due now. A job that is ready or being handed over stays as it is.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns what reschedule returns; the run may be ''
function edges.run(args)
  begin(moves.fields)
  local loc, token = args[1], args[2]
  local raw, r, st, answer = moves.look(loc)
  if not raw then return answer end
  local is_repeated = moves.is_repeated(r, token)
  if is_repeated or st ~= DELAYED then
    return moves.left(loc, st, is_repeated or st == READY or st == RESERVED)
  end
  return moves.make_ready(loc, st, r or moves.untried, token)
end
