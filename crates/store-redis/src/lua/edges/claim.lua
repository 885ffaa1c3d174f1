-- claim: a carrier takes the shard. The carrier that held it before is fenced.
-- KEYS  shard
-- ARGV  carrier
-- Returns the epoch, as text
function edges.claim(args)
  shard.begin(carrier.EPOCH_FIELDS)
  local epoch = string.format('%.0f', max(fields.epoch + 1, NOW_US))
  carrier.hold(epoch, args[1])
  shard.close()
  return epoch
end
