-- Due times. Those of the next minutes: a sorted set for each lane, `due:<lane>`, and
-- `turns`: which lane has its turn when. Those further off: lists, one for each ten minutes,
-- `slot:<number>`, which take a third of the memory, and `slots`: which there are. A slot is
-- put in order when its time comes near, and nothing of its time is promoted before it is
-- empty.
--
-- An entry is locator and due time. In a slot the lane follows. What is cancelled while its
-- slot is there is noted in `void:<number>`, since a list cannot be searched, and counts again
-- when it comes again; the notes go with the slot.
local WIDTH = 600000
local due_for, slot_for

local function entry_of(loc, due) return loc .. due end
local function due_key(lane) return KEY.due .. lane end

-- A job that became ready without waiting, by the due time it has: when it came, or by a call
-- that made it ready.
local function was_ready_at_once(raw, r)
  local own = r and sub(r, 3, 8) or NO_TIME
  if own ~= NO_TIME then return own == sub(mark(r), 9) end
  return read('>I6', raw, 1) <= read('>I6', raw, 7)
end

-- True for what lies in a slot still, or in order behind one.
local function is_far(at) return shard.slot > 0 and at >= shard.slot * WIDTH end

local function near(lane, at, entries)
  local list, score = due_for[lane], string.format('%.0f', at)
  if not list then
    list = {first = at}
    due_for[lane] = list
  end
  local size = #list
  for i = 1, #entries do list[size + 2 * i - 1], list[size + 2 * i] = score, entries[i] end
  if at < list.first then list.first = at end
end

-- Jobs are due; `entries` as above.
local function schedule_all(lane, at, entries)
  local slot, n = floor(at / WIDTH), #entries
  if slot > floor(NOW / WIDTH) + 1 then
    for i = 1, n do append(slot_for, slot, entries[i] .. lane) end
    return
  end
  near(lane, at, entries)
  moment(at)
end
local function schedule(lane, at, entry) schedule_all(lane, at, {entry}) end

-- Carries out what `schedule` has gathered.
local function save_schedule()
  for lane, list in pairs(due_for) do
    sliced('ZADD', due_key(lane), list)
    call('ZADD', KEY.turns, 'LT', list.first, lane)
  end
  for slot, list in pairs(slot_for) do
    sliced('SREM', KEY.void .. slot, list)
    if sliced('RPUSH', KEY.slot .. slot, list) == #list then
      call('ZADD', KEY.slots, slot, slot)
      earliest('slot', slot)
      -- It is to be put in order when its time is two slots away.
      moment((slot - 1) * WIDTH)
    end
  end
end

-- Takes a waiting job out of where it waits; false when it is ready.
local function unschedule(loc, raw, r)
  local due, lane = due_six(raw, r), lane_of(raw)
  local entry, at = entry_of(loc, due), read('>I6', due)
  local was_near = call('ZREM', due_key(lane), entry) == 1
  if not was_near and (not is_far(at) or was_ready_at_once(raw, r)) then return false end
  local slot = floor(at / WIDTH)
  if is_far(at) and (not was_near or call('EXISTS', KEY.slot .. slot) == 1) then
    call('SADD', KEY.void .. slot, entry .. lane)
  end
  return true
end

-- The state of a job: what its run says, and for one that waits where it does.
local function state_of(loc, raw, r)
  if r and state(r) ~= DELAYED then return state(r) end
  if was_ready_at_once(raw, r) then return READY end
  local due = due_six(raw, r)
  if is_far(read('>I6', due)) then return DELAYED end
  return call('ZSCORE', due_key(lane_of(raw)), entry_of(loc, due)) and DELAYED or READY
end
