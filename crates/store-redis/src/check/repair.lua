-- Confirms and repairs the damage that the consistency check has found: lost jobs, missing links and stale entries.
-- Uses check, dead_letters, due_index, lanes, leases, paused_lanes, ready, records, recurring, shard, tag_index, topics.

-- check_confirm: judges again whether jobs are lost.
-- KEYS  shard
-- ARGV  what check_lists returned last when the reading of the lists began; 1 to search the lists of jobs that may be
--   in them, else 0; then per job: what was known of it (locator, due, lane, attempts: 30 bytes; or the locator alone),
--   and the state whose list was read, 0 if the index is not a list
-- Returns per job {verdict, state, lane name, record's start}: {'', 0, '', ''} if it has changed since;
--   {'again', state, '', ''} if another list must hold it now, or its list is too long to be searched; {'lost', ...}
function scripts.check_confirm(args)
  check.begin()
  local locs, ids, unqueued, is_searched = {}, {}, tonumber(args[1]), args[2] == '1'
  for i = 3, #args, 2 do locs[#locs + 1] = sub(args[i], 1, 12) end
  jobs.load(locs)
  for _, loc in ipairs(locs) do if records[loc] then ids[#ids + 1] = record.lane(records[loc]) end end
  shard.load_rows(ids)
  local answers = {}
  for i, loc in ipairs(locs) do
    local verdict, code = check.judge(loc, args[2 * i + 1], tonumber(args[2 * i + 2]), unqueued, is_searched)
    local raw = verdict == 'lost' and records[loc]
    answers[i] = {verdict or '', verdict and code or 0, raw and lanes.name(record.lane(raw)) or '', raw and record.head(raw) or ''}
  end
  return answers
end

-- check_repair: repairs indexes. No job changes its state. Everything is judged again before it is repaired.
-- KEYS  shard
-- ARGV  'jobs', and then the jobs as for check_confirm; 'lanes', and their ids; 'index', and missing members;
--   'states', and locators of job states without a record; 'tags', and locators of jobs that are missing from the index of
--   tags; 'stray_tags', and members of it that lead to no job; 'schedules', and their names; 'times'
-- Returns per job, lane, member, job state or schedule 1 if it is repaired now, 0 if nothing is wrong (any
--   more), 2 if it cannot be repaired; for 'times' how many
local MOVED_ON, REPAIRED, CANNOT = 0, 1, 2

-- Puts a reserved job into its batch, which is checked at the job's deadline or, if that is earlier, as planned before.
local function relink_reserved(loc, s)
  local number, batch = state.lease(s), check.batch(s)
  local at = min(state.deadline(s), batch.at or state.deadline(s))
  call('ZADD', KEY.leases, at, number)
  if not check.holds(batch, loc) then
    batch.locs = batch.locs .. loc
    leases.put({number, batch.locs})
  end
  batch.at = at
  shard.earliest('lease_at', at)
  shard.wake_at(at)
end

-- Collects the entry of a delayed or ready job for its queue or the due index. Adds the slot of a delayed one to `slots`,
-- since it may have to be listed.
local function relink_waiting(loc, raw, s, slots)
  local lane, due_six = record.lane(raw), jobs.due(raw, s)
  local at = read('>I6', due_six)
  -- A job of an unsorted slot is not ready.
  if at <= NOW and (due_index.was_ready_at_once(raw, s) or not due_index.is_far(at)) then
    ready.add(lane, due_index.entry(loc, due_six))
    return
  end
  local slot, entry = string.format('%.0f', floor(at / WIDTH)), due_index.entry(loc, due_six)
  -- An entry that is marked as cancelled may be in the slot or not, so the mark is removed and the entry added.
  call('SREM', KEY.cancelled_in_slot .. slot, entry .. lane)
  due_index.add(lane, at, entry)
  slots[slot] = true
end

local function relink(loc, code, slots)
  local raw, s = records[loc], states[loc]
  if code == RESERVED then
    relink_reserved(loc, s)
  elseif code == DEAD then
    dead_letters.add({dead_letters.entry(loc, record.lane(raw))})
  elseif code == DELAYED or code == READY then
    relink_waiting(loc, raw, s, slots)
  else
    return CANNOT
  end
  return REPAIRED
end

local repair = {}

function repair.jobs(args)
  local locs, answers, lost, slots = {}, {}, {}, {}
  for i = 2, #args, 2 do locs[#locs + 1] = sub(args[i], 1, 12) end
  jobs.load(locs)
  -- All are judged first, because relinking one of them may relink others too.
  for i, loc in ipairs(locs) do
    local verdict, code = check.judge(loc, args[2 * i], tonumber(args[2 * i + 1]))
    lost[i] = verdict == 'lost' and code
  end
  for i, loc in ipairs(locs) do answers[i] = lost[i] and relink(loc, lost[i], slots) or MOVED_ON end
  due_index.save()
  ready.save('RPUSH')
  for slot in pairs(slots) do
    if call('EXISTS', KEY.slot .. slot) == 1 then
      call('ZADD', KEY.slots, slot, slot)
      shard.earliest('slot', tonumber(slot))
    end
  end
  return answers
end

function repair.lanes(args)
  local answers, ids = {}, {unpack(args, 2)}
  check.load_lanes(ids)
  for i, lane in ipairs(ids) do
    local missing = rows[lane] and check.missing_links(lane) or {}
    if missing.ready then
      paused_lanes.remove(lane)
      ready.add_turn(lane)
    end
    if missing.due then
      call('ZADD', KEY.due_lanes, missing.due, lane)
      shard.wake_at(missing.due)
    end
    answers[i] = next(missing) and REPAIRED or MOVED_ON
  end
  ready.wake()
  return answers
end

function repair.index(args)
  local answers, names = {}, {}
  for i = 2, #args do
    local topic = lanes.topic(args[i])
    names[i - 1] = #args[i] > #topic + 1 and sub(args[i], #topic + 2) or topics.field(topic)
  end
  shard.load_rows(names)
  for i, name in ipairs(names) do
    local member = rows[name] and topics.unlisted(name)
    if member then topics.list(member) end
    answers[i] = member and REPAIRED or MOVED_ON
  end
  return answers
end

function repair.states(args)
  local answers = {}
  for i = 2, #args do
    answers[i - 1] = call('HEXISTS', KEY.pool, args[i]) == 0 and call('HDEL', KEY.states, args[i]) or MOVED_ON
  end
  return answers
end

function repair.tags(args)
  local locs, ids, answers = {unpack(args, 2)}, {}, {}
  jobs.load(locs)
  for _, loc in ipairs(locs) do if records[loc] then ids[#ids + 1] = record.lane(records[loc]) end end
  shard.load_rows(ids)
  for i, loc in ipairs(locs) do
    local is_missing = records[loc] and not tag_index.holds(loc, records[loc])
    if is_missing then tag_index.relink(loc, records[loc]) end
    answers[i] = is_missing and REPAIRED or MOVED_ON
  end
  tag_index.save_added()
  return answers
end

function repair.stray_tags(args)
  local answers, is_stray = {}, {}
  for _, member in ipairs(check.stray_tags({unpack(args, 2)})) do is_stray[member] = true end
  for i = 2, #args do
    answers[i - 1] = is_stray[args[i]] and call('ZREM', KEY.tags, args[i]) or MOVED_ON
  end
  return answers
end

function repair.schedules(args)
  local answers = {}
  for i = 2, #args do
    local stored = call('HGET', KEY.recurring, args[i])
    local is_missing = recurring.is_whole(stored) and recurring.is_timeless(args[i], stored)
    if is_missing then
      local at = recurring.next(stored)
      call('ZADD', KEY.recurring_times, at, args[i])
      shard.earliest('next_firing_at', at)
      shard.call_carrier()
    end
    answers[i - 1] = is_missing and REPAIRED or MOVED_ON
  end
  return answers
end

function repair.times()
  local n = 0
  for name, at in pairs(check.wrong_times()) do
    shard.set(name, at)
    -- A slot is sorted when its time begins within the next slot.
    if name ~= 'paused_hosts' and name ~= 'limits' then shard.wake_at(name == 'slot' and max(0, at - 1) * WIDTH or at) end
    n = n + 1
  end
  return n
end

function scripts.check_repair(args)
  check.begin()
  local answer = repair[args[1]](args)
  -- The field of the first slot is corrected by 'times' alone.
  if args[1] ~= 'times' and fields.slot == check.first_slot then fields.slot = check.stored_slot end
  shard.close()
  return answer
end
