-- redrive_progress: how many jobs of the shard a redrive has revived. 'close' also ends it in this shard:
--   it revives no more jobs here.
-- KEYS  shard
-- ARGV  id of the redrive (8 bytes), 'look' or 'close', how long its count is kept (ms)
-- Returns the number
function edges.redrive_progress(args)
  local progress = redrives.progress(args[1])
  local revived = tonumber(call('HGET', progress, 'revived') or 0)
  if args[2] == 'close' then
    call('HSET', progress, 'over', 1)
    call('PEXPIRE', progress, args[3])
  end
  return revived
end
