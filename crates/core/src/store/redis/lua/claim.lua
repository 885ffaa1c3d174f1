#!lua flags=allow-oom
-- claim: a carrier takes the shard. Whoever held it is fenced from here on.
-- KEYS  shard
-- ARGV  carrier
-- Returns the epoch, as text
local held = tonumber(string.match(holder(), '^%d+') or 0)
local epoch = string.format('%.0f', math.max(held + 1, NOW_US))
hold(epoch, ARGV[1])
return epoch
