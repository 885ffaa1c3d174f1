-- add_lateness: adds deliveries to the histogram of the current minute, which is kept for seven minutes.
-- KEYS  shard
-- ARGV  the greatest lateness (us); then per bucket: its number, and how many deliveries it has
-- Returns 1
-- Uses lateness.
function scripts.add_lateness(args)
  tick()
  local key = lateness.key(lateness.minute())
  for i = 2, #args, 2 do call('HINCRBY', key, args[i], args[i + 1]) end
  local most = tonumber(call('HGET', key, 'max') or 0)
  call('HSET', key, 'max', whole(max(most, tonumber(args[1]))))
  call('PEXPIRE', key, 420000)
  return 1
end
