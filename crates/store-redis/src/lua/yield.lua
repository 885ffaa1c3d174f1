-- yield: a carrier gives the shard back, if it still holds it. The epoch stays.
-- KEYS  shard
-- ARGV  epoch
-- Returns 1 when it was held
local YIELD = {'epoch'}

function edges.yield(args)
  begin(YIELD)
  if is_fenced(args[1]) then return 0 end
  hold(args[1], '')
  close()
  return 1
end
