-- The due index: when delayed jobs are due. Adds and removes jobs; `due` reads the due ones.
--
-- Jobs due in the next minutes are in a sorted set for each lane, `due:<lane>`, and `due_lanes` says which lane is due
-- when. Jobs due later are in lists, one for each ten minutes, `slot:<number>`, which take a third of the memory;
-- `slots` says which lists exist. A slot is sorted into the sets when its time comes near, and no job of its time is
-- promoted before it is empty.
--
-- An entry is a locator and a due time. In a slot the lane follows. A list cannot be searched, so an entry that is
-- cancelled in its slot goes into a set, stored as ':cancelled:<number>'. If the same entry comes to the slot again, it
-- leaves the set and counts again. If half of a slot is cancelled, each cancel removes a few such entries from list and
-- set. The set is removed with the slot.
-- Uses records, shard.
local due_index = {
  -- The time of a slot, in ms.
  WIDTH = 600000,
}
local WIDTH = due_index.WIDTH
-- How many entries a cleaning of a slot reads. Two for each cancelled entry would be enough to keep up.
local FEW = 16
-- Entries to be written, by lane and by slot.
local near_entries, slot_entries

function due_index.start() near_entries, slot_entries = {}, {} end

function due_index.entry(loc, due) return loc .. due end
function due_index.key(lane) return KEY.due .. lane end

-- Whether a job became ready without waiting for its due time: when it was submitted, or by a move.
function due_index.was_ready_at_once(raw, s)
  local own, flags = s and sub(s, 3, 8) or NO_TIME, byte(raw, 13)
  if own ~= NO_TIME then return own == state.due_of_move(s) end
  if bit.band(flags, TOKEN) ~= 0 then return bit.band(flags, AT_ONCE) ~= 0 end
  return read('>I6', raw, 1) <= read('>I6', raw, 7)
end

-- Whether entries of a time are still in a slot, or wait until an earlier slot is sorted.
function due_index.is_far(at) return fields.slot > 0 and at >= fields.slot * WIDTH end

-- Collects entries with the time `at` (ms) for the sorted set of a lane, even if their time is far. `save` writes them.
function due_index.add_near(lane, at, entries)
  local list, score = near_entries[lane], whole(at)
  if not list then
    list = {first = at}
    near_entries[lane] = list
  end
  local size = #list
  for i = 1, #entries do list[size + 2 * i - 1], list[size + 2 * i] = score, entries[i] end
  if at < list.first then list.first = at end
end

-- Returns the time (ms) from which on entries go into slots.
function due_index.near_end() return (floor(NOW / WIDTH) + 2) * WIDTH end

-- Writes times and entries for the sorted set of a lane. `first` is the earliest of the times (ms).
function due_index.put(lane, list, first)
  sliced('ZADD', due_index.key(lane), list)
  call('ZADD', KEY.due_lanes, 'LT', whole(first), lane)
end

-- Collects entries of a lane for a time (ms): for its sorted set, and then wakes the carrier at that time, or for a slot
-- if the time is far. `save` writes them.
function due_index.add_all(lane, at, entries)
  if at >= due_index.near_end() then
    local slot, n = floor(at / WIDTH), #entries
    for i = 1, n do append(slot_entries, slot, entries[i] .. lane) end
    return
  end
  due_index.add_near(lane, at, entries)
  shard.wake_at(at)
end
function due_index.add(lane, at, entry) due_index.add_all(lane, at, {entry}) end

-- Returns those entries that are not yet in a slot that has cancelled ones. Entries that were cancelled there are still
-- in the list; takes them out of the cancelled ones, so that they count again.
local function new_in_slot(slot, list)
  local key = KEY.cancelled_in_slot .. slot
  local new, again = {}, {}
  for i = 1, #list, 4000 do
    local last = min(i + 3999, #list)
    for j, is_cancelled in ipairs(call('SMISMEMBER', key, unpack(list, i, last))) do
      local found = is_cancelled == 1 and again or new
      found[#found + 1] = list[i + j - 1]
    end
  end
  sliced('SREM', key, again)
  return new
end

-- Writes the collected entries, and lists new slots.
function due_index.save()
  for lane, list in pairs(near_entries) do due_index.put(lane, list, list.first) end
  for slot, list in pairs(slot_entries) do
    -- A set of cancelled entries exists only with its slot.
    local n_keys = call('EXISTS', KEY.slot .. slot, KEY.cancelled_in_slot .. slot)
    if n_keys == 2 then list = new_in_slot(slot, list) end
    -- A slot is listed before it exists. If the server stops between the two, a listed slot without entries does no
    -- harm; a slot that is not listed would hold back entries that are added to it later.
    if n_keys == 0 then
      call('ZADD', KEY.slots, slot, slot)
      shard.earliest('slot', slot)
      -- The slot is sorted when its time begins within the next slot.
      shard.wake_at((slot - 1) * WIDTH)
    end
    sliced('RPUSH', KEY.slot .. slot, list)
  end
end

-- Removes a slot that has no entries left.
function due_index.drop_slot(slot)
  call('UNLINK', KEY.slot .. slot, KEY.cancelled_in_slot .. slot)
  call('ZREM', KEY.slots, slot)
  if slot == fields.slot then shard.set('slot', tonumber(call('ZRANGE', KEY.slots, 0, 0)[1] or 0)) end
end

-- Cleans a slot if at least half of its entries are cancelled: reads the first few, removes the cancelled ones, and
-- moves the others to the end, because a slot has no order. Counts the cleaning in `unqueued`, for the check.
local function clean_slot(slot)
  local list, cancelled = KEY.slot .. slot, KEY.cancelled_in_slot .. slot
  local size = call('LLEN', list)
  if size == 0 or 2 * call('SCARD', cancelled) < size then return end
  local found, counting, void = call('LRANGE', list, 0, FEW - 1), {}, {}
  for i, is_cancelled in ipairs(call('SMISMEMBER', cancelled, unpack(found))) do
    local part = is_cancelled == 1 and void or counting
    part[#part + 1] = found[i]
  end
  shard.count('unqueued', 1)
  if #void == size then
    due_index.drop_slot(slot)
    return
  end
  sliced('RPUSH', list, counting)
  sliced('SREM', cancelled, void)
  call('LTRIM', list, #found, -1)
end

-- Removes a delayed job from the due index. In a slot it is marked as cancelled.
function due_index.remove(loc, raw, s)
  local due, lane = jobs.due(raw, s), record.lane(raw)
  local key, entry, at = due_index.key(lane), due_index.entry(loc, due), read('>I6', due)
  local is_alone = call('ZCARD', key) == 1
  if call('ZREM', key, entry) == 1 then
    if is_alone then call('ZREM', KEY.due_lanes, lane) end
  elseif due_index.is_far(at) then
    local slot = floor(at / WIDTH)
    call('SADD', KEY.cancelled_in_slot .. slot, entry .. lane)
    clean_slot(slot)
  end
end

-- Returns the code of a job's state. For a waiting job the due index decides between DELAYED and READY.
function due_index.code(loc, raw, s)
  if s and state.code(s) ~= DELAYED then return state.code(s) end
  if due_index.was_ready_at_once(raw, s) then return READY end
  local due = jobs.due(raw, s)
  if due_index.is_far(read('>I6', due)) then return DELAYED end
  return call('ZSCORE', due_index.key(record.lane(raw)), due_index.entry(loc, due)) and DELAYED or READY
end
