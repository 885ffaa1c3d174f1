-- members: a carrier's heartbeat, or its farewell. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  carrier, time to live (ms; 0 to leave)
-- Returns {ms until the first of the others runs out or -1, ms until a revival can be taken or
--   -1, carrier, carrier, ...}
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
  if changed then tell('members') end

  local answer = {-1, revivals.next_free()}
  local members = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do
    answer[#answer + 1] = members[i]
    local left = tonumber(members[i + 1]) - NOW
    if members[i] ~= me and (answer[1] < 0 or left < answer[1]) then answer[1] = left end
  end
  return answer
end
