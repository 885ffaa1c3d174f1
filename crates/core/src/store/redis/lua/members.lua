#!lua flags=allow-oom
-- members: a carrier's heartbeat, or its farewell. Not an edge; knows no shard.
-- KEYS  installation
-- ARGV  carrier, time to live (ms; 0 to leave)
-- Returns {ms until the first of the others runs out or -1, carrier, carrier, ...}
local key, me, ttl = KEYS[1] .. ':carriers', ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000000 + time[2]) / 1000)
local changed
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
if ttl > 0 then
  changed = redis.call('ZADD', key, now + ttl, me) == 1
else
  changed = redis.call('ZREM', key, me) == 1
end
if changed then redis.call('PUBLISH', string.match(key, '^(.-):{') .. ':wake', 'members') end

local answer = {-1}
local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
for i = 1, #members, 2 do
  answer[#answer + 1] = members[i]
  local left = tonumber(members[i + 1]) - now
  if members[i] ~= me and (answer[1] < 0 or left < answer[1]) then answer[1] = left end
end
return answer
