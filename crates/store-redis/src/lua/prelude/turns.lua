-- What a carrier does with due times: it puts slots in order and takes what is due.

-- Puts the first slot in order, or a part of it, once it is near. True when there is more.
local function cascade(limit)
  local slot = shard.slot
  if slot == 0 or slot > floor(NOW / WIDTH) + 1 then return false end
  local key, void = KEY.slot .. slot, KEY.void .. slot
  local found = call('LRANGE', key, 0, limit - 1)
  local is_void = #found > 0 and call('SMISMEMBER', void, unpack(found)) or {}
  for i, item in ipairs(found) do
    if is_void[i] == 0 then near(sub(item, 19), (read('>I6', item, 13)), {sub(item, 1, 18)}) end
  end
  save_schedule()
  if #found == limit then
    call('LTRIM', key, limit, -1)
    return true
  end
  call('UNLINK', key, void)
  call('ZREM', KEY.slots, slot)
  set('slot', tonumber(call('ZRANGE', KEY.slots, 0, 0)[1] or 0))
  return shard.slot > 0 and shard.slot <= floor(NOW / WIDTH) + 1
end

-- How many of the first n entries are due by a time. They are in order.
local function due_by(entries, n, at)
  if n == 0 or read('>I6', entries[n], 13) <= at then return n end
  local low, high = 0, n
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    if read('>I6', entries[middle], 13) <= at then low = middle else high = middle end
  end
  return low
end

-- The first entries of a lane that are due by a time, at most `limit`, and the time of the
-- one that follows them, if any.
local function due_first(lane, limit, at)
  local entries = call('ZRANGE', due_key(lane), 0, limit)
  local n = due_by(entries, min(#entries, limit), at)
  local following = entries[n + 1] and read('>I6', entries[n + 1], 13)
  for i = #entries, n + 1, -1 do entries[i] = nil end
  return entries, following
end

-- Takes the first n away. A lane that is still due by the time goes behind the others that are.
local function due_pop(lane, n, following, at)
  if n > 0 then call('ZREMRANGEBYRANK', due_key(lane), 0, n - 1) end
  if following then
    call('ZADD', KEY.turns, max(following, at), lane)
  else
    call('ZREM', KEY.turns, lane)
  end
end
