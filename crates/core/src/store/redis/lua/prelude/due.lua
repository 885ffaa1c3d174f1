-- Due times. Those of the next minutes: a sorted set for each lane, `due:<lane>`, and
-- `turns`: which lane has its turn when. Those further off: lists, one for each ten minutes,
-- `slot:<number>`, which take a third of the memory, and `slots`: which there are. A slot is
-- put in order when its time comes near, and nothing of its time is promoted before it is
-- empty.
--
-- An entry is locator and due time. In a slot the lane follows. What is cancelled while in a
-- slot is noted in `void`, since a list cannot be searched.
local WIDTH = 600000
local due_for, slot_for, far

local function entry_of(loc, due) return loc .. due end
local function due_key(lane) return KEY.due .. lane end

-- True for what lies in a slot still, or in order behind one.
local function is_far(at) return shard.slot > 0 and at >= shard.slot * WIDTH end

-- A job is due; `entry` as above.
local function schedule(lane, at, entry)
  local slot = floor(at / WIDTH)
  if slot > floor(NOW / WIDTH) + 1 then
    append(slot_for, slot, entry .. lane)
    far[#far + 1] = entry
  else
    append(due_for, lane, at)
    append(due_for, lane, entry)
    moment(at)
  end
end

local function due_add(lists)
  for lane, list in pairs(lists) do
    local first = list[1]
    for i = 3, #list, 2 do if list[i] < first then first = list[i] end end
    sliced('ZADD', due_key(lane), list)
    call('ZADD', KEY.turns, 'LT', first, lane)
  end
end

-- Carries out what `schedule` has gathered.
local function save_schedule()
  due_add(due_for)
  -- What was cancelled and is there again counts.
  sliced('SREM', KEY.void, far)
  for slot, list in pairs(slot_for) do
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
  local due = due_six(raw, r)
  local entry = entry_of(loc, due)
  if call('ZREM', due_key(lane_of(raw)), entry) == 1 then return true end
  if not is_far(read('>I6', due)) then return false end
  call('SADD', KEY.void, entry)
  return true
end

-- The state of a job: what its run says, and for one that waits where it does.
local function state_of(loc, raw, r)
  if r and state(r) ~= DELAYED then return state(r) end
  local due = due_six(raw, r)
  if is_far(read('>I6', due)) then return DELAYED end
  return call('ZSCORE', due_key(lane_of(raw)), entry_of(loc, due)) and DELAYED or READY
end
