-- release_shard: a carrier gives the shard back, if it still holds it. The epoch stays.
-- KEYS  shard
-- ARGV  epoch
-- Returns 1 when it held the shard, else 0
function edges.release_shard(args)
  shard.begin(carrier.EPOCH_FIELDS)
  if carrier.is_fenced(args[1]) then return 0 end
  carrier.hold(args[1], '')
  shard.close()
  return 1
end
