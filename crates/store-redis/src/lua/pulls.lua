-- pulls: the lanes for pull that are not empty, in an order of their own. No edge.
-- KEYS  shard
-- ARGV  how many to pass over, how many to answer
-- Returns their ids
function edges.pulls(args)
  return call('ZRANGE', KEY.pulls, args[1], args[1] + args[2] - 1)
end
