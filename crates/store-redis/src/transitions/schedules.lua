-- Schedules: changing, reading and removing them, finding those whose time has come, and making them fire.
-- Uses arrivals, due_index, records, recurring, shard.

-- change_schedules: stores schedules, or removes them. Allowed when memory is full, so that they can be paused, deleted
--   and given another time. No schedule may occur twice.
-- KEYS  shard
-- ARGV  per schedule: name, its version or '' if there must be none, what is to be stored of it or '' to remove it
-- Returns per schedule 1, or 0 if it has another version and was left as it is
function scripts.change_schedules(args)
  shard.begin()
  local names, changes, answers = {}, {}, {}
  for i = 1, #args, 3 do names[#names + 1] = args[i] end
  for i, stored in ipairs(recurring.get(names)) do
    local is_current = recurring.has_version(stored, args[3 * i - 1])
    if is_current then changes[#changes + 1] = {names[i], args[3 * i]} end
    answers[i] = is_current and 1 or 0
  end
  recurring.save(changes)
  shard.close()
  return answers
end

-- forget_schedule_times: removes schedules from the index of times, so that those that cannot be read do not keep others
--   from firing.
-- KEYS  shard
-- ARGV  names
-- Returns how many were removed
function scripts.forget_schedule_times(args)
  shard.begin()
  local first = first_score(KEY.recurring_times, args)
  local gone = call('ZREM', KEY.recurring_times, unpack(args))
  if first ~= fields.next_firing_at then shard.set('next_firing_at', first) end
  shard.close()
  return gone
end

-- fire: submits the jobs of schedules, nothing -> delayed, or ready if already due, and stores each schedule as it is
--   afterwards. A job whose id is taken counts as submitted. No schedule and no job may occur twice in a call.
-- KEYS  shard
-- ARGV  what arrivals.lanes reads; then per schedule: name, its version, what is to be stored of it, lane id, how many
--   jobs, and per job: locator, due ("+ms" from now, or absolute ms), the record from its flags on, external payload or ''
-- Returns per schedule {1}; {0} if it has another version; {422, 'topics' or 'lanes'} if there are too many of them,
--   {429, ...} if its tenant has too many; {421} if another lane has the id of its lane: these change nothing. Then how
--   many jobs the shard has accepted. Or what submit returns after a loss

local function firings(args, from)
  local all, names, locs, i = {}, {}, {}, from
  while i <= #args do
    local firing = {version = args[i + 1], stored = args[i + 2], lane = args[i + 3], jobs = i + 5}
    firing.last = firing.jobs + 4 * tonumber(args[i + 4]) - 1
    all[#all + 1], names[#names + 1] = firing, args[i]
    for job = firing.jobs, firing.last, 4 do locs[#locs + 1] = args[job] end
    i = firing.last + 1
  end
  return all, names, locs
end

function scripts.fire(args)
  local rows_of_lanes, from = arrivals.lanes(args)
  shard.begin(rows_of_lanes)
  local refused = arrivals.check_accepts_jobs()
  if refused then return refused end
  local all, names, locs = firings(args, from)
  arrivals.look_up(locs)
  local answers, changes = {}, {}
  for i, stored in ipairs(recurring.get(names)) do
    local firing = all[i]
    local refusal = not recurring.has_version(stored, firing.version) and {0} or arrivals.refuse_lane(firing.lane)
    answers[i] = refusal or {1}
    if not refusal then
      changes[#changes + 1] = {names[i], firing.stored}
      for job = firing.jobs, firing.last, 4 do
        local loc = args[job]
        if not records[loc] and not tombstones[loc] then
          local group = arrivals.group(firing.lane, arrivals.due_time(args[job + 1]))
          arrivals.add(group, loc, args[job + 2], args[job + 3])
          arrivals.close(group)
        end
      end
    end
  end
  arrivals.save()
  recurring.save(changes)
  shard.close()
  return arrivals.answered(answers)
end

-- due_schedules: the first schedules whose time has come. Changes nothing.
-- KEYS  shard
-- ARGV  how many at most, about how many bytes of schedules at most
-- Returns {now (ms), us until the first one fires, -1 for never, then per schedule: name, what is stored of it, 1 if the
--   job whose end it waits for has not ended, else 0}
function scripts.due_schedules(args)
  shard.begin()
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
    local code = records[loc] and due_index.code(loc, records[loc], states[loc])
    if code == DELAYED or code == READY or code == RESERVED then answer[i] = 1 end
  end
  return answer
end

-- schedules: reads schedules of the shard by their names.
-- KEYS  shard
-- ARGV  names
-- Returns what is stored of each, '' if it is not there
function scripts.schedules(args)
  local answer = recurring.get(args)
  for i = 1, #args do answer[i] = answer[i] or '' end
  return answer
end
