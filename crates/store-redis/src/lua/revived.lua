-- revived: how many jobs of the shard a revival has revived; from then on, where that is asked
-- for, it revives no more of them. No edge.
-- KEYS  shard
-- ARGV  id of the revival (8 bytes), 'look' or 'close', how long this is kept (ms)
-- Returns the number
function edges.revived(args)
  local progress = revivals.of_shard(args[1])
  local revived = tonumber(call('HGET', progress, 'revived') or 0)
  if args[2] == 'close' then
    call('HSET', progress, 'over', 1)
    call('PEXPIRE', progress, args[3])
  end
  return revived
end
