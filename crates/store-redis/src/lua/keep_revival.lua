-- keep_revival: its holder works on, or gives it back. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  id (8 bytes), holder (8 bytes), for how long (ms; 0 to give it back)
-- Returns 1, or 0 when it has ended or is another's
function edges.keep_revival(args)
  tick()
  local raw, ttl = revivals.get(args[1]), tonumber(args[3])
  if not raw or byte(raw) ~= revivals.RUNNING or revivals.holder(raw) ~= args[2] then return 0 end
  call('ZADD', revivals.running(), ttl > 0 and NOW + ttl or 0, args[1])
  if ttl == 0 then tell('revival') end
  return 1
end
