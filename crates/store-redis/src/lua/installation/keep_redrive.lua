-- keep_redrive: the holder of a redrive works on, or gives it back.
-- KEYS  installation
-- ARGV  id (8 bytes), holder (8 bytes), for how long (ms; 0 to give it back)
-- Returns 1, or 0 when it has ended or belongs to another holder
function edges.keep_redrive(args)
  tick()
  local redrive, ttl = redrives.get(args[1]), tonumber(args[3])
  if not redrive or byte(redrive) ~= redrives.RUNNING or redrives.holder(redrive) ~= args[2] then return 0 end
  call('ZADD', redrives.running(), ttl > 0 and NOW + ttl or 0, args[1])
  if ttl == 0 then publish('revival') end
  return 1
end
