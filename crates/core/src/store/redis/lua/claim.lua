#!lua flags=allow-oom
-- claim: a carrier takes the shard. Whoever held it is fenced from here on.
-- KEYS  shard
-- ARGV  carrier
-- Returns the epoch, as text
open('epoch')
local epoch = string.format('%.0f', math.max(shard.epoch + 1, NOW_US))
hold(epoch, ARGV[1])
close()
return epoch
