-- Schedules, which make jobs recur: how they are stored, and when they fire next.
--
-- A schedule's name is the text of its key. The hash `schedules` has of each its version (8 bytes), its next time (6, 0
-- for none), the locator of the job whose end its next firing waits for (12, zeros for none), and data that only
-- processes read. The sorted set `schedule-times` has the schedules with a next time by that time (ms). The field
-- `next_firing_at` is the first of these times, 0 for none.
-- Uses shard.
local recurring = {NO_LOCATOR = string.rep('\0', 12)}

-- Returns the stored values of schedules by name, false for those that do not exist.
function recurring.get(names) return fetch(KEY.recurring, names) end

-- Whether a schedule has this version; '' stands for a schedule that does not exist.
function recurring.has_version(stored, version) return (stored and sub(stored, 1, 8) or '') == version end

-- Whether a stored schedule exists and has data after the fixed part.
function recurring.is_whole(stored) return stored and #stored > 27 end

-- Whether a schedule fires again, but `schedule-times` lacks it or has a later time.
function recurring.is_timeless(name, stored)
  local at, known = recurring.next(stored), tonumber(call('ZSCORE', KEY.recurring_times, name) or nil)
  return at > 0 and not (known and known <= at)
end

function recurring.next(stored) return (read('>I6', stored, 9)) end
function recurring.former(stored) return sub(stored, 15, 26) end

-- Stores schedules, given as {name, value}; the value '' removes one. Keeps the times and `next_firing_at` in step, and
-- wakes the carrier if a schedule fires before all others. Reads before it writes.
function recurring.save(changes)
  if #changes == 0 then return end
  local names, gone, put, scored, timeless = {}, {}, {}, {}, {}
  for i, change in ipairs(changes) do names[i] = change[1] end
  local first = first_score(KEY.recurring_times, names)
  for _, change in ipairs(changes) do
    local name, stored = change[1], change[2]
    local at = stored == '' and 0 or recurring.next(stored)
    if stored == '' then
      gone[#gone + 1] = name
    else
      put[#put + 1], put[#put + 2] = name, stored
    end
    if at == 0 then
      timeless[#timeless + 1] = name
    else
      scored[#scored + 1], scored[#scored + 2] = at, name
      if first == 0 or at < first then first = at end
    end
  end
  sliced('HSET', KEY.recurring, put)
  sliced('HDEL', KEY.recurring, gone)
  sliced('ZADD', KEY.recurring_times, scored)
  sliced('ZREM', KEY.recurring_times, timeless)
  -- A pass tells the carrier when the first one fires.
  if first > 0 and (fields.next_firing_at == 0 or first < fields.next_firing_at) then shard.call_carrier() end
  if first ~= fields.next_firing_at then shard.set('next_firing_at', first) end
  -- If the clock is set back before the next pass, that pass sees by a later `next` that the clock was ahead.
  if fields.next < NOW - 1 then shard.set('next', NOW) end
end

-- Makes all schedules due, in the same order: the clock was set back, so a carrier must plan each again.
function recurring.look_at_all()
  if fields.next_firing_at == 0 then return end
  call('ZUNIONSTORE', KEY.recurring_times, 1, KEY.recurring_times, 'WEIGHTS', '1e-9')
  shard.set('next_firing_at', first_score(KEY.recurring_times))
end
