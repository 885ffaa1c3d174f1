-- Schedules: those whose time has come, and those of given names.

-- due_schedules: the first schedules whose time has come.
-- KEYS  shard
-- ARGV  limit, about how many bytes
-- Returns {now (ms), us until the first one fires, -1 for never, then per schedule: name, what is stored of it, 1 if the
--   job whose end it waits for has not ended, else 0}
function edges.due_schedules(args)
  shard.begin(schedule.FIELDS)
  local limit, left = tonumber(args[1]), tonumber(args[2])
  local names = call('ZRANGE', KEY.recurring_times, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
  local answer = {NOW, wait_us(first_score(KEY.recurring_times))}
  local formers = {}
  for _, name in ipairs(names) do
    local stored = call('HGET', KEY.recurring, name) or ''
    local n = #answer
    answer[n + 1], answer[n + 2], answer[n + 3] = name, stored, 0
    if stored ~= '' and recurring.former(stored) ~= recurring.NO_LOCATOR then formers[n + 3] = recurring.former(stored) end
    left = left - #stored
    if left <= 0 then break end
  end
  local locs = {}
  for _, loc in pairs(formers) do locs[#locs + 1] = loc end
  jobs.load(locs)
  for i, loc in pairs(formers) do
    local code = records[loc] and schedule.code(loc, records[loc], states[loc])
    if code == DELAYED or code == READY or code == RESERVED then answer[i] = 1 end
  end
  return answer
end

-- schedules: schedules of the shard.
-- KEYS  shard
-- ARGV  names
-- Returns what is stored of each, '' if it is not there
function edges.schedules(args)
  local answer = recurring.get(args)
  for i = 1, #args do answer[i] = answer[i] or '' end
  return answer
end
