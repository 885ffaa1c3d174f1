-- Due jobs: sorts slots into the due index, and reads and removes its due entries, for promote.
-- Uses due_index, shard.
local due = {}

-- Sorts the first slot, or `limit` entries of it, into the lanes if its time is near. Returns true if more are left.
function due.sort_slot(limit)
  local slot = fields.slot
  if slot == 0 or slot > floor(NOW / WIDTH) + 1 then return false end
  local key, cancelled = KEY.slot .. slot, KEY.cancelled_in_slot .. slot
  local found = call('LRANGE', key, 0, limit - 1)
  local is_cancelled = #found > 0 and call('SMISMEMBER', cancelled, unpack(found)) or {}
  for i, item in ipairs(found) do
    if is_cancelled[i] == 0 then due_index.add_near(sub(item, 19), (read('>I6', item, 13)), {sub(item, 1, 18)}) end
  end
  due_index.save()
  if #found == limit then
    call('LTRIM', key, limit, -1)
    return true
  end
  due_index.drop_slot(slot)
  return fields.slot > 0 and fields.slot <= floor(NOW / WIDTH) + 1
end

-- Returns how many of the first n entries are due by a time (ms). Entries are in order.
local function due_by(entries, n, at)
  if n == 0 or read('>I6', entries[n], 13) <= at then return n end
  local low, high = 0, n
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    if read('>I6', entries[middle], 13) <= at then low = middle else high = middle end
  end
  return low
end

-- Returns up to `limit` entries of a lane due by a time (ms), and the due time of the next one, or nil.
function due.first(lane, limit, at)
  local entries = call('ZRANGE', due_index.key(lane), '0', whole(limit))
  local n = due_by(entries, min(#entries, limit), at)
  local following = entries[n + 1] and read('>I6', entries[n + 1], 13)
  for i = #entries, n + 1, -1 do entries[i] = nil end
  return entries, following
end

-- Removes the first n entries of a lane. Its new time is that of the entry that follows, nil for none, but at least
-- `at` (ms), so a lane with more due entries goes behind the other due lanes.
function due.pop(lane, n, following, at)
  if n > 0 then call('ZREMRANGEBYRANK', due_index.key(lane), '0', whole(n - 1)) end
  if following then
    call('ZADD', KEY.due_lanes, whole(max(following, at)), lane)
  else
    call('ZREM', KEY.due_lanes, lane)
  end
end
