-- renew: reserved -> reserved with a later deadline. Its batch is looked at when it was to be,
-- and then again.
-- KEYS  shard
-- ARGV  locator, receipt (number and bits, 16 bytes), length (ms)
-- Returns the new deadline (ms), or -1 when the receipt is not current
local RENEW = {'next'}

function edges.renew(args)
  begin(RENEW)
  local loc = args[1]
  load_runs({loc})
  local r = runs[loc]
  if not (r and state(r) == RESERVED and receipt(r) == args[2]) then return -1 end
  local ends = max(deadline(r), NOW_UP + tonumber(args[3]))
  put(loc, with_deadline(r, ends))
  save()
  return ends
end
