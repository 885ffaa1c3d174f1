-- promote: delayed and due -> ready. Each due lane promotes at most its share of the limit. Sorts a part of the next
--   unsorted slot first, if its time is near. Only for the carrier that has the shard.
-- KEYS  shard
-- ARGV  epoch, limit (jobs), longest sleep (ms), retention (ms)
-- Returns {} if another carrier has the shard, or {how many were promoted, 0, waits in us...}. Raises the error of a
--   lane that failed, after all other lanes
-- Uses carrier, due, due_index, events, lanes, ready, shard.
-- How many lanes one call visits; the pause (us) between sorting two parts of a near slot.
local MOST_LANES, PAUSE = 64, 10000

local function first_scheduled() return call('ZRANGE', KEY.due_lanes, '0', whole(MOST_LANES), 'WITHSCORES') end

-- Corrects the times at which lanes are due that were set behind others before the clock was set back. These lanes are
-- among the first, because all that was promoted since went before them.
local function correct_places(scored)
  for i = 1, #scored, 2 do
    local lane, score = scored[i], tonumber(scored[i + 1])
    local first = score > NOW and first_score(due_index.key(lane)) or 0
    if first > 0 and first < score then call('ZADD', KEY.due_lanes, first, lane) end
  end
end

-- Finds the first lanes that are due by a time, in order; returns them, and when the lane behind them is due, or nil.
local function due_lanes(scored, at)
  local found, following = {}, nil
  for i = 1, #scored, 2 do
    local score = tonumber(scored[i + 1])
    if score > at or #found == MOST_LANES then
      following = score
      break
    end
    found[#found + 1] = scored[i]
  end
  return found, following
end

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

function scripts.promote(args)
  -- The due index is read before `begin`, which then reads the rows of due lanes together with the fields.
  tick()
  local scheduled = first_scheduled()
  shard.begin((due_lanes(scheduled, NOW)))
  if carrier.is_fenced(args[1]) then return {} end
  local left, promoted = tonumber(args[2]), 0
  -- A pass plans the next one no later than this, so a later plan was made before the clock was set back.
  local was_set_back = fields.next > NOW + tonumber(args[3])
  if was_set_back then correct_places(scheduled) end
  local is_near = fields.slot > 0 and fields.slot <= floor(NOW / WIDTH) + 1
  local has_more = due.sort_slot(left)
  if is_near or was_set_back then scheduled = first_scheduled() end
  -- Jobs of an unsorted slot's time and later wait until the slot is sorted.
  local bound = fields.slot > 0 and min(NOW, fields.slot * WIDTH - 1) or NOW

  local visited, soon = due_lanes(scheduled, bound)
  local failure
  local share = ceil(left / max(#visited, 1))
  for _, lane in ipairs(visited) do
    local take = min(share, left)
    if take == 0 then
      soon = NOW
      break
    end
    -- A lane whose keys cannot be read or written does not keep the other lanes from their turn.
    local is_done, n, following = pcall(promote_lane, lane, take, bound)
    if is_done then
      left, promoted = left - n, promoted + n
      if following and (not soon or following < soon) then soon = following end
    else
      failure = n
    end
  end

  ready.wake()
  local due_in = soon and until_us(soon) or -1
  if fields.slot > 0 then
    -- A near slot is sorted with pauses that leave the server to others, unless some of it is due.
    local is_due = fields.slot * WIDTH <= NOW
    local slot = has_more and (is_due and 0 or PAUSE) or until_us((fields.slot - 1) * WIDTH)
    if due_in < 0 or slot < due_in or is_due then due_in = slot end
  end
  local waits = carrier.waits(tonumber(args[3]), tonumber(args[4]), due_in)
  shard.close()
  if failure then raise(failure) end
  return {promoted, 0, unpack(waits)}
end

-- The common case: at most one lane is due, a push lane, no slot is near, nobody watches, and the clock was not set back.
function fast.promote(args)
  tick()
  local scheduled = first_scheduled()
  local lane, following, max_sleep = scheduled[1], tonumber(scheduled[2]), tonumber(args[3])
  local is_due, n, row = lane and following <= NOW, 0, nil
  if is_due and (#scheduled > 2 or lanes.is_pull(lane)) then return nil end
  if is_due then row = shard.open(lane)[3] else shard.open() end
  local is_common = not carrier.is_fenced(args[1]) and fields.next <= NOW + max_sleep and fields.watched <= NOW
    and (fields.slot == 0 or fields.slot > floor(NOW / WIDTH) + 1)
  if not is_common then return nil end

  if is_due then
    local found
    found, following = due.first(lane, tonumber(args[2]), NOW)
    n = #found
    if n == 0 or not row then return nil end
    ready.start()
    ready.push(lane, found, 'RPUSH')
    due.pop(lane, n, following, NOW)
    fields.delayed, fields.ready, row = fields.delayed - n, fields.ready + n, lanes.counted(row, -n, n, 0, 0)
  end
  local due_in = following and until_us(following) or -1
  local slot_in = fields.slot > 0 and until_us((fields.slot - 1) * WIDTH) or -1
  if due_in < 0 or slot_in >= 0 and slot_in < due_in then due_in = slot_in end
  local waits = carrier.waits(max_sleep, tonumber(args[4]), due_in)
  if is_due then shard.save(lane, row) else shard.save() end
  if is_due then ready.wake() end
  return {n, 0, unpack(waits)}
end
