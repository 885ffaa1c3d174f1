-- members: records that a carrier is alive, or leaves, and lists the live carriers.
-- KEYS  installation
-- ARGV  carrier, time to live (ms; 0 to leave), the longest time to live of any carrier (ms)
-- Returns {ms until the first of the other carriers expires or -1, ms until a bulk operation can be taken or -1,
--   {carrier, ...}}
--
-- The lock of each carrier, its time to live, is stored beside its expiry. An expiry that is further ahead than the
-- lock was stored before the clock was set back. It becomes one lock from now, so a carrier that died before keeps
-- its shards for one lock, and not until the clock has caught up. Claims of bulk operations are shortened likewise.
-- Uses bulks.

-- Reads the locks (ms) by carrier, and returns them.
local function stored_locks(key)
  local flat, locks = call('HGETALL', key), {}
  for i = 1, #flat, 2 do locks[flat[i]] = tonumber(flat[i + 1]) end
  return locks
end

function scripts.members(args)
  tick()
  local key, lock_key = K .. ':carriers', K .. ':locks'
  local me, ttl, longest = args[1], tonumber(args[2]), tonumber(args[3])
  local locks, changed = stored_locks(lock_key), false
  if ttl > 0 then
    changed = call('ZADD', key, whole(NOW + ttl), me) == 1
    if locks[me] ~= ttl then call('HSET', lock_key, me, args[2]) end
    locks[me] = ttl
  else
    changed = call('ZREM', key, me) == 1
  end
  if changed then publish('members') end

  local next_change, carriers = -1, {}
  local members = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do
    local name, left = members[i], tonumber(members[i + 1]) - NOW
    local lock = locks[name] or longest
    if left <= 0 then
      call('ZREM', key, name)
    else
      locks[name] = nil
      if left > lock then
        left = lock
        call('ZADD', key, NOW + lock, name)
      end
      carriers[#carriers + 1] = name
      if name ~= me and (next_change < 0 or left < next_change) then next_change = left end
    end
  end
  -- The locks that are left have no carrier.
  for name in pairs(locks) do call('HDEL', lock_key, name) end
  return {next_change, bulks.next_free(longest), carriers}
end
-- It uses nothing of what `start` empties.
fast.members = scripts.members
