-- The steps of the consistency check: which index must hold a job, and whether it does; and whether tags, lanes, times
-- and counts are right. A list cannot be searched, so for a job that must be in a list the check remembers the job, and
-- reads the lists later. It looks up all other indexes at once.
-- Uses dead_letters, destinations, due_index, lanes, leases, order, paused_lanes, ready, records, shard, tag_index, topics.
local check = {
  SUMS = {'lanes', 'topics', 'paused'},
  LEDGER = {
    'accepted', 'delayed', 'ready', 'reserved', 'dead', 'done', 'cancelled', 'purged', 'missing', 'lease', 'pauses',
    'replaced',
  },
  -- The fields that hold the first time of an index, and the numbers of paused destinations and of limits.
  TIMES = {'lease_at', 'dead_at', 'next_notice_at', 'next_firing_at', 'slot', 'paused_hosts', 'limits'},
  -- How many entries of lists one call searches, in about 2 ms.
  MOST_SEARCHED = 100000,
}

-- Begins a call of the check. The first slot is read from `slots`, so that a wrong field is one finding and not one for
-- each job.
function check.begin()
  shard.begin()
  check.batches, check.searched = {}, 0
  check.first_slot = tonumber(call('ZRANGE', KEY.slots, 0, 0)[1] or 0)
  check.stored_slot, fields.slot = fields.slot, check.first_slot
end

-- Makes a step of a scan with HSCAN or ZSCAN: from the cursor `at` ('0' is the start), in the server's run in which the
-- scan began, of about `count` entries. Returns the server's run now, the next cursor ('0' is the end), and the entries;
-- the run alone if the scan began in another one.
function check.scan(command, key, at, began_in, count)
  local run = server_run()
  if at ~= '0' and began_in ~= run then return run end
  local scanned = call(command, key, at, 'COUNT', count)
  return run, scanned[1], scanned[2]
end

-- Returns the batch of a reserved job: the locators in it, and the time of the next check of it (ms), nil for none.
function check.batch(s)
  local number = state.lease(s)
  local batch = check.batches[number]
  if not batch then
    batch = {at = tonumber(call('ZSCORE', KEY.leases, number) or nil), locs = call('HGET', KEY.batches, number) or ''}
    check.batches[number] = batch
  end
  return batch
end

-- Whether a batch contains a locator, at the place of one.
function check.holds(batch, loc)
  local from = 1
  while true do
    local found = string.find(batch.locs, loc, from, true)
    if not found then return false end
    if found % 12 == 1 then return true end
    from = found + 1
  end
end

-- Whether a reserved job is in its batch, and the next check of that is not after the deadline, or soon.
local function is_leased(loc, s)
  local batch, latest = check.batch(s), max(state.deadline(s), NOW + leases.SOON)
  if batch.at and batch.at <= latest and check.holds(batch, loc) then return true end
  local alone = tonumber(call('ZSCORE', KEY.leases, leases.name(state.lease(s), {loc})) or nil)
  return alone ~= nil and alone <= latest
end

-- Returns what `index_of` returns of a ready job. One that waits in an ordered topic is in no list.
function check.index_of_ready(loc, raw, s)
  return READY, order.is_used() and order.is_behind(loc, raw, s) or nil
end

-- Returns the code of the state whose index must hold a job, and whether that index does; nil if the index is a list.
function check.index_of(loc, raw, s)
  local code = s and state.code(s) or DELAYED
  if code == RESERVED then return code, is_leased(loc, s) end
  if code == DEAD then return code, call('ZSCORE', KEY.dead, dead_letters.entry(loc, record.lane(raw))) and true end
  if code ~= DELAYED then return code, false end
  if due_index.was_ready_at_once(raw, s) then return check.index_of_ready(loc, raw, s) end
  local due_six, lane = jobs.due(raw, s), record.lane(raw)
  local at, entry = read('>I6', due_six), due_index.entry(loc, due_six)
  local score = call('ZSCORE', due_index.key(lane), entry)
  if score then return DELAYED, tonumber(score) == at end
  if not due_index.is_far(at) then return check.index_of_ready(loc, raw, s) end
  local slot = string.format('%.0f', floor(at / WIDTH))
  if not call('ZSCORE', KEY.slots, slot) then return DELAYED, false end
  if call('SISMEMBER', KEY.cancelled_in_slot .. slot, entry .. lane) == 1 then return DELAYED, false end
  return DELAYED
end

-- Whether an entry of the due index is right: its job, which must have been read, is delayed in this lane until then.
function check.is_awaited(lane, entry)
  local loc = sub(entry, 1, 12)
  local raw, s = records[loc], states[loc]
  if not raw or s and state.code(s) ~= DELAYED or due_index.was_ready_at_once(raw, s) then return false end
  return jobs.due(raw, s) == sub(entry, 13, 18) and record.lane(raw) == lane
end

-- Returns those members of the index of tags that do not lead to a job with the tag. Reads the jobs.
function check.stray_tags(members)
  local locs, ids, strays = {}, {}, {}
  for i, member in ipairs(members) do locs[i] = tag_index.locator(member) end
  jobs.load(locs)
  for _, loc in ipairs(locs) do if records[loc] then ids[#ids + 1] = record.lane(records[loc]) end end
  shard.load_rows(ids)
  for i, member in ipairs(members) do
    local raw, is_stray = records[locs[i]], true
    for _, own in ipairs(raw and tag_index.members_of(locs[i], raw) or {}) do is_stray = is_stray and own ~= member end
    -- Without the row of its lane the members of a job are not known.
    if is_stray and not (raw and not rows[record.lane(raw)]) then strays[#strays + 1] = member end
  end
  return strays
end

-- Returns a waiting job as text to compare with later: locator, due time, lane and attempts.
function check.waiting(loc, raw, s)
  return loc .. jobs.due(raw, s) .. record.lane(raw) .. (s and sub(s, 9, 12) or '\0\0\0\0')
end

-- Whether one of the lists that must hold a waiting job has its entry, which is exact even while jobs change. Nil if the
-- lists have more entries than this call may still search, since a search reads a list entry by entry.
local function is_listed(code, loc, raw, s)
  local due, lane = jobs.due(raw, s), record.lane(raw)
  local entry, keys = due_index.entry(loc, due), {KEY.front .. lane, KEY.ready .. lane}
  if code == DELAYED then
    entry, keys = entry .. lane, {KEY.slot .. string.format('%.0f', floor(read('>I6', due) / WIDTH))}
  end
  local size = 0
  for _, key in ipairs(keys) do size = size + call('LLEN', key) end
  if check.searched + size > check.MOST_SEARCHED then return nil end
  check.searched = check.searched + size
  for _, key in ipairs(keys) do
    if call('LPOS', key, entry) then return true end
  end
  return false
end

-- Judges a job that was not found in its index. Returns 'lost', 'again' if another list must hold it now, or nil if it
-- is indexed or has changed since; and the code of its state. `known` is the earlier result of `waiting`. A job leaves a
-- list only for another attempt or another due time; if both are the same and the job was not in the list that was read,
-- it is lost. `place` is the state whose list was read, or 0 if the missing index is not a list. A list is to be read
-- 'again' if a queue or slot was cleaned meanwhile: `unqueued` is the number of cleanings when the reading began. With
-- `is_searched` the lists are searched instead; 'again' then means that they are too long.
function check.judge(loc, known, place, unqueued, is_searched)
  local raw, s = records[loc], states[loc]
  if not raw then return nil end
  local code, is_there = check.index_of(loc, raw, s)
  if is_there == false then return 'lost', code end
  if is_there or place == 0 or check.waiting(loc, raw, s) ~= known then return nil end
  if is_searched then
    local is_met = is_listed(code, loc, raw, s)
    if is_met == nil then return 'again', code end
    return not is_met and 'lost' or nil, code
  end
  local has_shifted = unqueued and unqueued ~= fields.unqueued
  if code ~= place or has_shifted then return 'again', code end
  return 'lost', code
end

-- Returns the missing links to a lane: `ready`, true if it has ready jobs, but no turn and no place among paused lanes;
-- `due`, its time (ms) if `due_lanes` has none or a later one. The rows of lane and topic must have been read.
function check.missing_links(lane)
  local missing, first = {}, first_score(due_index.key(lane))
  if ready.length(lane) > 0 then
    local has_turn = call('ZSCORE', ready.turns(lane), lane)
    missing.ready = not has_turn and not paused_lanes.has(lane) or nil
  end
  if first > 0 then
    local at = call('ZSCORE', KEY.due_lanes, lane)
    missing.due = (not at or tonumber(at) > max(first, NOW)) and first or nil
  end
  return missing
end

-- Whether an entry of the shard's hash is a lane's row.
function check.is_lane(name, row) return #name == 8 and #row > 29 and string.find(row, ' ', 30, true) ~= nil end

-- Reads rows of lanes and of their topics.
function check.load_lanes(ids)
  shard.load_rows(ids)
  local names = {}
  for _, lane in ipairs(ids) do
    if rows[lane] then names[#names + 1] = topics.field(lanes.topic(lanes.name(lane))) end
  end
  shard.load_rows(names)
end

-- Returns, by name, the right values of wrong fields among TIMES: too late times, first slot, numbers of pauses and limits.
function check.wrong_times()
  local wrong = {}
  local firsts = {lease_at = KEY.leases, dead_at = KEY.dead, next_notice_at = KEY.outbox, next_firing_at = KEY.recurring_times}
  for name, key in pairs(firsts) do
    local first = first_score(key)
    -- Dead jobs that hold their keys are passed over.
    local is_passed = name == 'dead_at' and order.is_used() and fields[name] > 0
    if first > 0 and not is_passed and (fields[name] == 0 or fields[name] > first) then wrong[name] = first end
  end
  if check.stored_slot ~= check.first_slot then wrong.slot = check.first_slot end
  if fields.paused_hosts ~= destinations.count() then wrong.paused_hosts = destinations.count() end
  if fields.limits ~= destinations.n_limits() then wrong.limits = destinations.n_limits() end
  return wrong
end
