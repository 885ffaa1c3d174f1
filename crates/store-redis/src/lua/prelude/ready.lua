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
