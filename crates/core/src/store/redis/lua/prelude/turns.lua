-- What a carrier does with due times: it puts slots in order and takes what is due.

-- Puts the first slot in order, or a part of it, once it is near. True when there is more.
local function cascade(limit)
  local slot = shard.slot
  if slot == 0 or slot > floor(NOW / WIDTH) + 1 then return false end
  local key, entries, near = KEY.slot .. slot, {}, {}
  local found = call('LRANGE', key, 0, limit - 1)
  for i, item in ipairs(found) do entries[i] = sub(item, 1, 18) end
  local gone = #entries > 0 and call('SMISMEMBER', KEY.void, unpack(entries)) or {}
  local void = {}
  for i, entry in ipairs(entries) do
    if gone[i] == 1 then
      void[#void + 1] = entry
    else
      local lane = sub(found[i], 19)
      append(near, lane, (read('>I6', entry, 13)))
      append(near, lane, entry)
    end
  end
  due_add(near)
  sliced('SREM', KEY.void, void)
  if #found == limit then
    call('LTRIM', key, limit, -1)
    return true
  end
  call('UNLINK', key)
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

-- Takes the first n away. A lane that is still due goes behind the others that are.
local function due_pop(lane, n, following)
  if n > 0 then call('ZREMRANGEBYRANK', due_key(lane), 0, n - 1) end
  if following then
    call('ZADD', KEY.turns, max(following, NOW), lane)
  else
    call('ZREM', KEY.turns, lane)
  end
end
