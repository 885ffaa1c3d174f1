-- Claims and releases of a shard by carriers.
-- Uses carrier, shard.

-- take_shard: a carrier claims the shard. The carrier that held it before is fenced.
-- KEYS  shard
-- ARGV  carrier
-- Returns the epoch, as text
function scripts.take_shard(args)
  shard.begin()
  local epoch = string.format('%.0f', max(fields.epoch + 1, NOW_US))
  carrier.hold(epoch, args[1])
  shard.close()
  return epoch
end

-- release_shard: a carrier releases the shard, if it still holds it. The epoch stays.
-- KEYS  shard
-- ARGV  epoch
-- Returns 1 if it held the shard, else 0
function scripts.release_shard(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return 0 end
  carrier.hold(args[1], '')
  shard.close()
  return 1
end
