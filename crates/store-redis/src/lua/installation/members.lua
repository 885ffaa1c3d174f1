-- members: records that a carrier lives, or that it leaves.
-- KEYS  installation
-- ARGV  carrier, time to live (ms; 0 to leave)
-- Returns {ms until the first of the other carriers expires or -1, ms until a redrive can be taken or -1,
--   {carrier, ...}}
function edges.members(args)
  tick()
  local key, me, ttl = K .. ':carriers', args[1], tonumber(args[2])
  local changed
  call('ZREMRANGEBYSCORE', key, '-inf', NOW)
  if ttl > 0 then
    changed = call('ZADD', key, NOW + ttl, me) == 1
  else
    changed = call('ZREM', key, me) == 1
  end
  if changed then publish('members') end

  local next_change, carriers = -1, {}
  local members = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do
    carriers[#carriers + 1] = members[i]
    local left = tonumber(members[i + 1]) - NOW
    if members[i] ~= me and (next_change < 0 or left < next_change) then next_change = left end
  end
  return {next_change, redrives.next_free(), carriers}
end
