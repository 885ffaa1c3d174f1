-- Ready queues: a list of entries for each lane, and `lanes`, the lanes that are not empty in the order of their
-- turns. An entry is a job's locator and the due time that it was promoted for. Pull lanes are in `pulls` instead,
-- because consumers ask for them by name. A wake-up names a pull lane that is no longer empty.
local ready = {}
local ready_entries, is_woken

function ready.start() ready_entries, is_woken = {}, false end

function ready.key(lane) return KEY.ready .. lane end
-- The sorted set that a lane takes its turns in.
function ready.turns(lane) return lanes.is_pull(lane) and KEY.pulls or KEY.lanes end

function ready.wake_consumers(lane)
  publish('pull ' .. KEY.tag .. ' ' .. string.gsub(lane, '.', function(c) return string.format('%02x', byte(c)) end))
end

-- Gives a lane a turn unless it has one. Wakes its consumers now, or the notifiers in `ready.wake`.
function ready.add_turn(lane)
  call('ZADD', ready.turns(lane), 'NX', NOW_US, lane)
  if lanes.is_pull(lane) then ready.wake_consumers(lane) else is_woken = true end
end

-- `command` is RPUSH, or LPUSH for jobs that are delivered again.
function ready.push(lane, entries, command)
  if sliced(command, ready.key(lane), entries) > #entries then return end
  ready.add_turn(lane)
end
function ready.add(lane, entry) append(ready_entries, lane, entry) end
function ready.add_all(lane, entries) append_all(ready_entries, lane, entries) end

-- Writes the added entries, and sends wake-ups.
function ready.save(command)
  for lane, entries in pairs(ready_entries) do ready.push(lane, entries, command) end
  ready.wake()
end
function ready.wake() if is_woken then publish('ready ' .. KEY.tag) end end

-- The first lanes in the order of their turns.
function ready.lanes(limit) return call('ZRANGE', KEY.lanes, 0, limit - 1) end

-- The first entries of a lane, and one more if there is one.
function ready.first(lane, limit) return call('LRANGE', ready.key(lane), 0, limit) end

-- The fields that removing an entry reads. An audit reads queues from their ends, and misses entries if others
-- behind them are removed meanwhile. So it compares how often that was done.
ready.REMOVE_FIELDS = {'paused', 'unqueued'}
-- How far from both ends of a queue an entry is searched for, because a list can only be searched one by one.
local NEAR_END = 200

-- The position of an entry near an end of its queue, and that end as LREM takes it; nil if it is not there.
function ready.find(lane, entry)
  local key = ready.key(lane)
  local at = call('LPOS', key, entry, 'RANK', -1, 'MAXLEN', NEAR_END)
  if at then return at, -1 end
  at = call('LPOS', key, entry, 'MAXLEN', NEAR_END)
  if at then return at, 1 end
end

-- Puts an entry in the place of another.
function ready.swap(lane, at, entry) call('LSET', ready.key(lane), at, entry) end

-- Removes an entry near an end of its queue. A lane with nothing left loses its turn.
function ready.remove(lane, entry, which_end)
  local key = ready.key(lane)
  local is_alone = call('LLEN', key) == 1
  call('LREM', key, which_end, entry)
  shard.count('unqueued', 1)
  if not is_alone then return end
  call('ZREM', ready.turns(lane), lane)
  if fields.paused > 0 then
    shard.load_rows({lane})
    if rows[lane] then topics.unpark_lane(lane) end
  end
end

-- Removes the first n entries. A push lane goes behind the others; a lane with nothing left loses its turn.
function ready.pop(lane, n, is_all, turn)
  if is_all then
    call('ZREM', ready.turns(lane), lane)
    if n > 0 or not lanes.is_pull(lane) then call('UNLINK', ready.key(lane)) end
  else
    if not lanes.is_pull(lane) then call('ZADD', KEY.lanes, 'XX', NOW_US + turn, lane) end
    if n > 0 then call('LTRIM', ready.key(lane), n, -1) end
  end
end
