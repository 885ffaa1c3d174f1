-- replace: submit with an `if_exists` other than `refuse`: nothing, delayed, ready or dead -> delayed, or ready if
--   already due. A job that was tried or has ended begins a new generation. No job may occur twice in a call.
-- KEYS  shard
-- ARGV  what arrivals.lanes reads
--   per job: locator; due ("+ms" from now, or absolute ms); '' to replace, 'update' to replace only other content of a
--   job that has not ended, to postpone the longest time from creation to due (ms) or 'any'; lane id; the record from
--   its flags on; external payload or ''
-- Returns per job: {201, state, job state or '', record's start} new; {202, ...} in the place of a job; {200, ...} the
--   same submit again; {409, ...} the same with other content; {200 or 409, tombstone} either of them once the job
--   has ended; {423, how long the lease lasts (us), state, job state, record's start} reserved; {422, 'topics' or
--   'lanes'} if there are too many of them, {429, ...} if its tenant has too many; {421} if another lane has the id of
--   the job's lane
-- Uses arrivals, dead_letters, due_index, events, lanes, order, ready, records, shard, tag_index, tombs.
-- The place of the id's length in the rest of a record.
local ID = RECORD - 12

-- Makes the answer to a submit that changes nothing, else returns false; sets `new.code`, the state of the replaced job.
local function refusal(new)
  local loc = new.loc
  local raw, s, tomb = records[loc], states[loc], tombstones[loc]
  local known = raw and record.token(raw) or tomb and tombs.token(tomb)
  if known and known == record.token(new.rest, ID) then return arrivals.taken(loc, new.rest) end
  new.code = raw and due_index.code(loc, raw, s)
  if new.limit == 'update' and (raw or tomb) then
    local is_same = raw and record.hash(raw) == sub(new.rest, 6, 13)
    if is_same or not raw or new.code == DEAD then return arrivals.taken(loc, new.rest) end
  end
  if new.code ~= RESERVED then return arrivals.refuse_lane(new.lane) end
  local answer = jobs.described(423, RESERVED, raw, s)
  table.insert(answer, 2, until_us(state.deadline(s)))
  return answer
end

-- Sets the creation time and the job state of the new job. A waiting job that was not tried keeps its creation time. In
-- a new generation the job state keeps the number of attempts and records at which lease the generation begins.
local function begin_generation(new, raw, s)
  local tomb = tombstones[new.loc]
  if raw and new.code ~= DEAD and not (s and state.was_tried(s)) then
    new.arrived, new.created = read('>I6', raw, 7), read('>I6', jobs.created(raw, s))
    new.state = s and state.replaced(s)
    return
  end
  local former = raw and jobs.created(raw, s) or tomb and tombs.created(tomb)
  new.created = former and max(NOW, read('>I6', former) + 1) or NOW
  new.arrived = new.created
  local attempts = s and sub(s, 9, 12) or tomb and tombs.attempts(tomb)
  if s or attempts and attempts ~= '\0\0\0\0' then new.state = state.of_new_generation(s, attempts, fields.lease) end
end

-- Sets the new job's state and due time, and finds the replaced job's index entry. Writes nothing.
local function plan(new)
  local raw, s = records[new.loc], states[new.loc]
  begin_generation(new, raw, s)
  local at = arrivals.due_time(new.due)
  local limit = tonumber(new.limit)
  if limit then at = max(NOW, min(at, new.created + limit)) end
  new.group = arrivals.group(new.lane, at, nil, new.arrived)
  if new.group.code == READY then new.rest = char(byte(new.rest) + AT_ONCE) .. sub(new.rest, 2) end
  -- The key of a payload is touched before the first write, as all others are.
  if new.external ~= '' then call('EXISTS', KEY.body .. new.loc) end
  if not raw then return end
  -- A reader may read the former record before this call and the new payload after it. A former record without a token
  -- knows its payload by the length alone, so the new one must have another length.
  local is_of_length = new.external ~= '' and record.is_external(raw) and record.token(raw) == ''
    and read('>I4', raw, #raw - 3) == #new.external
  if is_of_length then new.external = new.external .. '\0' end
  local due, lane = jobs.due(raw, s), record.lane(raw)
  new.old, new.leaves_body = {raw = raw, state = s, lane = lane}, record.is_external(raw) and new.external == ''
  -- In an ordered topic it gets the place of its new time.
  local is_in_place = new.code == new.group.code and lane == new.lane and not order.has(lane)
  new.stays = is_in_place and due == new.group.due
  if new.code ~= READY or new.stays then return end
  -- The keys of the queue are touched before the first write too.
  ready.length(lane)
  if is_in_place then new.list, new.at = ready.find(lane, due_index.entry(new.loc, due)) end
end

-- Adds the new job and its index entry, in the place of the replaced job's if that was found, and counts both.
local function enter(new)
  local group, lane = new.group, new.lane
  if new.old then order.leave(new.loc, new.old.raw, new.old.state) end
  local raw = arrivals.add(group, new.loc, new.rest, new.external, new.old and new.old.raw)
  local entry = group.entries[1]
  if new.stays then
    -- The index has it already.
  elseif new.at then
    ready.swap(new.list, new.at, entry)
  elseif group.code == READY then
    ready.add(lane, entry)
  else
    due_index.add(lane, group.at, entry)
  end
  if new.state then jobs.put(new.loc, new.state) end
  records[new.loc] = raw
  if new.old then
    local is_postponed = new.limit == 'any' or tonumber(new.limit)
    events.came_from(new.code, is_postponed and 'postponed' or 'replaced')
    lanes.move(new.old.lane, new.code, nil, 1)
    tag_index.leave(new.loc, new.old.raw)
    shard.count('replaced', 1)
  else
    shard.count('accepted', 1)
  end
  lanes.move(lane, nil, group.code, 1)
end

-- Removes replaced jobs from the index of their former state and of tags, their external payloads if the new job has
-- none, and the tombstones of jobs that had ended.
local function leave(all)
  local dead, ended, unqueued = {}, {}, {}
  for _, new in ipairs(all) do
    local loc, old = new.loc, new.old
    if not old or new.stays or new.at then
      -- The index has nothing of the former job alone.
    elseif new.code == DEAD then
      dead[#dead + 1] = dead_letters.entry(loc, old.lane)
    elseif new.code == DELAYED then
      due_index.remove(loc, old.raw, old.state)
    else
      unqueued[old.lane] = (unqueued[old.lane] or 0) + 1
    end
    if tombstones[loc] then ended[#ended + 1] = loc end
    if new.leaves_body then call('UNLINK', KEY.body .. loc) end
  end
  dead_letters.remove(dead)
  tombs.remove(ended)
  for lane, n in pairs(unqueued) do ready.clean(lane, n) end
  tag_index.know()
  tag_index.save_removed()
end

function scripts.replace(args)
  local locs, from = arrivals.begin(args)
  local refused = arrivals.check_accepts_jobs()
  if refused then return refused end
  local answers, all = {}, {}
  for j, loc in ipairs(locs) do
    local i = from + 6 * (j - 1)
    local new = {
      loc = loc, due = args[i + 1], limit = args[i + 2], lane = args[i + 3], rest = args[i + 4], external = args[i + 5],
    }
    answers[j] = refusal(new)
    if not answers[j] then
      plan(new)
      all[#all + 1] = new
      local raw = new.group.times .. new.rest
      answers[j] = jobs.described(new.old and 202 or 201, new.group.code, raw, new.state)
    end
  end

  for _, new in ipairs(all) do enter(new) end
  arrivals.save()
  jobs.save()
  leave(all)
  shard.close()
  return arrivals.answered(answers)
end
