-- Due jobs: sorts slots into the due index, and makes due jobs ready, for promote and for a reserve of the waiter.
-- Uses due_index, events, lanes, ready, shard.
local due = {}
-- How many lanes one call visits.
local MOST_LANES = 64

-- Whether the first slot is to be sorted. Until then its jobs, and later ones, do not become ready.
function due.is_slot_near() return fields.slot > 0 and fields.slot <= floor(NOW / WIDTH) + 1 end

-- Sorts the first slot, or `limit` entries of it, into the lanes if its time is near. Returns true if more are left.
function due.sort_slot(limit)
  if not due.is_slot_near() then return false end
  local slot = fields.slot
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
  return due.is_slot_near()
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

-- Returns the first lanes of the due index and when each is due.
function due.first_scheduled() return call('ZRANGE', KEY.due_lanes, '0', whole(MOST_LANES), 'WITHSCORES') end

-- Finds the first lanes that are due by a time, in order; returns them, and when the lane behind them is due, or nil.
function due.lanes(scheduled, at)
  local found, following = {}, nil
  for i = 1, #scheduled, 2 do
    local score = tonumber(scheduled[i + 1])
    if score > at or #found == MOST_LANES then
      following = score
      break
    end
    found[#found + 1] = scheduled[i]
  end
  return found, following
end

-- Returns the time (ms) by which jobs may become ready: those of an unsorted slot's time and later wait until it is sorted.
function due.bound() return fields.slot > 0 and min(NOW, fields.slot * WIDTH - 1) or NOW end

-- Makes up to `take` jobs of a lane due by `bound` ready, and commits. Returns how many, and the next due time.
local function promote_lane(lane, take, bound)
  local entries, following = due.first(lane, take, bound)
  local n = #entries
  if n > 0 then ready.push(lane, entries, 'RPUSH') end
  due.pop(lane, n, following, bound)
  if n > 0 then
    lanes.move(lane, DELAYED, READY, n)
    shard.commit()
    events.promoted_all(entries, lane)
  end
  return n, following
end

-- Makes up to `limit` jobs of the scheduled lanes ready that are due by `bound`; each due lane gives its share. Returns how
-- many, when the next one is due, or nil, and the error of a lane that has failed.
function due.promote(scheduled, limit, bound)
  local visited, soon = due.lanes(scheduled, bound)
  local left, failure = limit, nil
  local share = ceil(limit / max(#visited, 1))
  for _, lane in ipairs(visited) do
    local take = min(share, left)
    if take == 0 then
      soon = NOW
      break
    end
    -- A lane whose keys cannot be read or written does not keep the other lanes from their turn.
    local is_done, n, following = pcall(promote_lane, lane, take, bound)
    if is_done then
      left = left - n
      if following and (not soon or following < soon) then soon = following end
    else
      failure = n
    end
  end
  return limit - left, soon, failure
end
