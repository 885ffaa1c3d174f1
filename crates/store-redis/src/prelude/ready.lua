-- Ready queues: the entries of a lane's ready jobs in order, and `lanes`, the lanes that are not empty in the order of
-- their turns, which are times. An entry is a job's locator and the due time that it was promoted for. Pull lanes are in
-- `pulls` instead, because a consumer reserves jobs of topics that it names. When a pull lane gets its first job, the
-- wake-up names the topic.
--
-- A queue is a list, `ready:<lane>`. A cleaning, which removes stale entries, begins at the head of the list and moves
-- the other entries to a second list, `front:<lane>`. While there is a front, it comes before the list. The field
-- `fronts` is the number of lanes with a front.
-- Uses lanes, order, paused_lanes, records, shard, topics.
local ready = {}
local ready_entries, is_woken

function ready.start() ready_entries, is_woken = {}, false end

local function list_of(lane) return KEY.ready .. lane end
local function front_of(lane) return KEY.front .. lane end
-- Returns the key of the sorted set with the turns of a lane.
function ready.turns(lane) return lanes.is_pull(lane) and KEY.pulls or KEY.lanes end

function ready.wake_consumers(topic) publish('pull ' .. KEY.tag .. ' ' .. topic) end

-- Gives a lane a turn if it has none. Wakes a pull lane's consumers; for other lanes `ready.wake` wakes notifiers.
function ready.add_turn(lane)
  call('ZADD', ready.turns(lane), 'NX', whole(NOW_US), lane)
  if not lanes.is_pull(lane) then
    is_woken = true
    return
  end
  shard.load_rows({lane})
  local name = lanes.name(lane)
  if name then ready.wake_consumers(lanes.topic(name)) end
end

-- Adds entries to a lane's list, and gives the lane a turn if the list was empty. `command` is RPUSH, or LPUSH for jobs
-- that are delivered again. They come after the front, if there is one.
function ready.put(lane, entries, command)
  if #entries == 0 or sliced(command, list_of(lane), entries) > #entries then return end
  ready.add_turn(lane)
end
-- The same for jobs that have become ready. In an ordered topic only those are added that may be delivered.
function ready.push(lane, entries, command)
  ready.put(lane, order.is_used() and order.admit(lane, entries) or entries, command)
end
function ready.add(lane, entry) append(ready_entries, lane, entry) end
function ready.add_all(lane, entries) append_all(ready_entries, lane, entries) end

-- Writes the collected entries, and sends wake-ups.
function ready.save(command)
  for lane, entries in pairs(ready_entries) do ready.push(lane, entries, command) end
  ready.wake()
end
function ready.wake_notifiers() publish('ready ' .. KEY.tag) end
function ready.wake() if is_woken then ready.wake_notifiers() end end

-- Returns push lanes in the order of their turns, after the first `skip`, at most `limit`.
function ready.lanes(skip, limit) return call('ZRANGE', KEY.lanes, whole(skip), whole(skip + limit - 1)) end

-- Returns entries of a queue after the first `skip`, at most `limit`.
function ready.range(lane, skip, limit)
  local list = list_of(lane)
  if fields.fronts == 0 then return call('LRANGE', list, whole(skip), whole(skip + limit - 1)) end
  local found = call('LRANGE', front_of(lane), skip, skip + limit - 1)
  if #found == limit then return found end
  local passed = max(0, skip - call('LLEN', front_of(lane)))
  for _, entry in ipairs(call('LRANGE', list, passed, passed + limit - #found - 1)) do found[#found + 1] = entry end
  return found
end

-- Returns entries of a queue before the last `skip`, at most `limit`, in the order of the queue.
function ready.range_from_end(lane, skip, limit)
  local list = list_of(lane)
  local found = call('LRANGE', list, -skip - limit, -skip - 1)
  if #found == limit then return found end
  local passed, missing = max(0, skip - call('LLEN', list)), limit - #found
  local all = call('LRANGE', front_of(lane), -passed - missing, -passed - 1)
  for _, entry in ipairs(found) do all[#all + 1] = entry end
  return all
end

-- Returns the number of entries of a queue, stale ones included.
function ready.length(lane) return call('LLEN', front_of(lane)) + call('LLEN', list_of(lane)) end

-- Returns the entries that are not stale: their jobs are ready, in this lane and with this due time. Reads the jobs.
function ready.counting(lane, entries)
  local locs, counting = {}, {}
  for i, entry in ipairs(entries) do locs[i] = sub(entry, 1, 12) end
  jobs.load_new(locs)
  for i, entry in ipairs(entries) do
    local raw, s = records[locs[i]], states[locs[i]]
    local is_waiting = raw and not (s and state.code(s) ~= DELAYED)
    if is_waiting and jobs.due(raw, s) == sub(entry, 13) and record.lane(raw) == lane then
      counting[#counting + 1] = entry
    end
  end
  return counting
end

local function remove_front(lane)
  if call('UNLINK', front_of(lane)) == 1 then shard.write({fronts = fields.fronts - 1}) end
end

-- Removes the first n entries.
local function trim(lane, n)
  if fields.fronts > 0 then
    local of_front = call('LLEN', front_of(lane))
    if n < of_front then
      call('LTRIM', front_of(lane), n, -1)
      return
    end
    remove_front(lane)
    n = n - of_front
  end
  if n > 0 then call('LTRIM', list_of(lane), whole(n), '-1') end
end

-- Removes the first n entries of a queue, or with `is_all` the whole queue and the lane's turn. Otherwise a push lane
-- goes behind the others, `turn` µs after now or after the last lease: its number only grows, so the lane also goes
-- behind lanes that had their turn before the clock was set back. The field `lease` must have been read.
function ready.pop(lane, n, is_all, turn)
  if is_all then
    call('ZREM', ready.turns(lane), lane)
    -- Nearly always nothing is unusual, and the field `limits` need not be read.
    if fields.unusual > 0 and fields.limits > 0 then paused_lanes.forget(lane) end
    if n > 0 or not lanes.is_pull(lane) then
      call('UNLINK', list_of(lane))
      if fields.fronts > 0 then remove_front(lane) end
    end
  else
    if not lanes.is_pull(lane) then call('ZADD', KEY.lanes, 'XX', whole(max(NOW_US, fields.lease) + turn), lane) end
    if n > 0 then trim(lane, n) end
  end
end

-- The time (µs) of the last turn that has come. Calls give turns that are a little later than the last lease.
local CLOSE = 1000
local function last_turn() return max(NOW_US, fields.lease) + CLOSE end

-- Return how many push lanes have a turn that has come, and how many have any turn.
function ready.in_turn() return call('ZCOUNT', KEY.lanes, '-inf', last_turn()) end
function ready.n_lanes() return call('ZCARD', KEY.lanes) end

-- Defers push lanes: gives them turns in the future, so that lanes which get jobs meanwhile come first. The turns are
-- spread evenly over 4 ms for each lane of `group`, a tenant, or of the shard for another group; over 0.1 s at least, as
-- without a group, and 10 s at most. The field `lease` must have been read.
function ready.defer(names, group)
  local SOON, PER_LANE, LATEST = 100000, 4000, 10000000
  local n = group and (topics.n_lanes_of(group) or ready.n_lanes()) or 0
  local first, step, turns = last_turn(), max(SOON, min(LATEST, PER_LANE * n)) / #names, {}
  for i, lane in ipairs(names) do turns[2 * i - 1], turns[2 * i] = floor(first + i * step), lane end
  sliced('ZADD', KEY.lanes, turns)
end

-- Searches for an entry at both ends of a queue's list and the head of its front, NEAR_END entries of each, because a
-- search reads a list entry by entry. Returns key and position, or nil.
function ready.find(lane, entry)
  local NEAR_END = 200
  local list, front = list_of(lane), fields.fronts > 0 and front_of(lane)
  local at = call('LPOS', list, entry, 'RANK', -1, 'MAXLEN', NEAR_END) or call('LPOS', list, entry, 'MAXLEN', NEAR_END)
  if at then return list, at end
  at = front and call('LPOS', front, entry, 'MAXLEN', NEAR_END)
  if at then return front, at end
end

-- Puts an entry in the place of another.
function ready.swap(list, at, entry) call('LSET', list, at, entry) end

-- Cleans a queue in which this call makes `new` entries stale: reads entries at the head of the list, removes the stale
-- ones and moves the others to the front. An emptied lane loses its turn. Does nothing while more than half of the
-- entries are not stale. It reads at least FEW entries, and PER_ENTRY for each that becomes stale: two would do, since
-- half are stale. Must run after all other writes of the call but the counts. The check can miss an entry that is
-- moved meanwhile, so it compares `unqueued`, the number of cleanings.
function ready.clean(lane, new)
  local FEW, PER_ENTRY = 16, 3
  local list, front = list_of(lane), front_of(lane)
  local of_front, size = call('LLEN', front), call('LLEN', list)
  local waiting = lanes.ready(lane)
  if of_front + size - waiting < max(1, waiting) then return end
  shard.count('unqueued', 1)
  -- The cleaning has reached the end of the list, and begins again.
  if size == 0 then
    call('RENAME', front, list)
    shard.write({fronts = fields.fronts - 1})
    of_front, size = 0, of_front
  end
  local entries = call('LRANGE', list, 0, max(FEW, PER_ENTRY * new) - 1)
  local counting, is_whole = ready.counting(lane, entries), of_front == 0 and #entries == size
  -- `fronts` is raised first, so that no front is overlooked if the script stops here.
  if of_front == 0 and not is_whole and #counting > 0 then shard.write({fronts = fields.fronts + 1}) end
  sliced('RPUSH', is_whole and list or front, counting)
  call('LTRIM', list, #entries, -1)
  if of_front + size + #counting > #entries then return end
  call('ZREM', ready.turns(lane), lane)
  if fields.paused + fields.paused_hosts + fields.limits > 0 and rows[lane] then paused_lanes.remove(lane) end
end
