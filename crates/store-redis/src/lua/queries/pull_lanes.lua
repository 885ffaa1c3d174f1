-- pull_lanes: the pull lanes that are not empty, in the order of their last wake-ups.
-- KEYS  shard
-- ARGV  how many to skip, how many to return
-- Returns their ids
function edges.pull_lanes(args)
  return call('ZRANGE', KEY.pulls, args[1], args[1] + args[2] - 1)
end
