-- claim: a carrier takes the shard. Whoever held it is fenced from here on.
-- KEYS  shard
-- ARGV  carrier
-- Returns the epoch, as text
local CLAIM = {'epoch'}

function edges.claim(args)
  begin(CLAIM)
  local epoch = string.format('%.0f', max(shard.epoch + 1, NOW_US))
  hold(epoch, args[1])
  close()
  return epoch
end
