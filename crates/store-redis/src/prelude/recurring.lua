-- Schedules: jobs that recur.
--
-- A schedule's name is the text of its key. The hash `schedules` has of each its version (8 bytes), its next time (6, 0
-- for none), the locator of the job whose end its next firing waits for (12, zeros for none), and what only processes
-- read. The sorted set `schedule-times` has those with a next time by that (ms). The field `next_firing_at` is the
-- first of these times, 0 for none.
-- Uses shard.
local recurring = {NO_LOCATOR = string.rep('\0', 12)}

-- What is stored of schedules, false for those that are not there.
function recurring.get(names) return fetch(KEY.recurring, names) end

-- Whether a schedule has a version, '' for one that is not there.
function recurring.has_version(stored, version) return (stored and sub(stored, 1, 8) or '') == version end

-- Whether what is stored of a schedule is as long as its topic and what only processes read at least need.
function recurring.is_whole(stored) return stored and #stored > 27 end

-- Whether a schedule fires again and the times do not have it by then.
function recurring.is_timeless(name, stored)
  local at, known = recurring.next(stored), tonumber(call('ZSCORE', KEY.recurring_times, name) or nil)
  return at > 0 and not (known and known <= at)
end

function recurring.next(stored) return (read('>I6', stored, 9)) end
function recurring.former(stored) return sub(stored, 15, 26) end

-- Stores schedules, given by name with what is to be stored of them, '' to remove them. Reads before it writes.
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
  if first > 0 and (fields.next_firing_at == 0 or first < fields.next_firing_at) then shard.wake_at(NOW) end
  if first ~= fields.next_firing_at then shard.set('next_firing_at', first) end
  -- Where the clock was ahead for less than the time between two passes, the next pass sees by this that it was.
  if fields.next < NOW then shard.set('next', NOW) end
end

-- Makes all schedules due: the clock was set back, and their times may be too far ahead. A carrier looks at each, and
-- lets it wait for its next time by the clock. Their order stays.
function recurring.look_at_all()
  if fields.next_firing_at == 0 then return end
  call('ZUNIONSTORE', KEY.recurring_times, 1, KEY.recurring_times, 'WEIGHTS', '1e-9')
  shard.set('next_firing_at', first_score(KEY.recurring_times))
end
