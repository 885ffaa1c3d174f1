-- What an audit goes by: where a job has to stand, and whether it does. Reading one page of
-- records it can tell of all but the lists, which nobody can search: of those it is only known
-- which job has to be in which, and the walk through the list tells.
local audits = {
  -- When a batch of jobs for pull that ran out is looked at again, at the latest (ms).
  SOON = 1000,
}

-- Where a place in a hash means something: in one life of a server.
function audits.life()
  return sub(string.match(call('INFO', 'server'), 'run_id:(%x+)') or '', 1, 8)
end

-- The first slot is taken from where it is kept, so that a wrong word on it is one finding and
-- not one for each job.
function audits.begin(fields)
  begin(fields)
  audits.batches = {}
  audits.first_slot = tonumber(call('ZRANGE', KEY.slots, 0, 0)[1] or 0)
  audits.told_slot, shard.slot = shard.slot, audits.first_slot
end

function audits.attempts(r) return r and sub(r, 9, 12) or '\0\0\0\0' end

-- The batch of a reserved job: what it holds, and when it is looked at.
function audits.batch(r)
  local number = lease_number(r)
  local batch = audits.batches[number]
  if not batch then
    batch = {at = tonumber(call('ZSCORE', KEY.leases, number) or nil), locs = call('HGET', KEY.batches, number) or ''}
    audits.batches[number] = batch
  end
  return batch
end

-- Whether a batch holds a job.
function audits.holds(batch, loc)
  local from = 1
  while true do
    local found = string.find(batch.locs, loc, from, true)
    if not found then return false end
    if found % 12 == 1 then return true end
    from = found + 1
  end
end

-- Whether a recover would come by a reserved job in time.
function audits.is_leased(loc, r)
  local batch = audits.batch(r)
  if not batch.at or batch.at > max(deadline(r), NOW + audits.SOON) then return false end
  return audits.holds(batch, loc)
end

-- The state that a job has to be found in, and whether it is; nil where that is a list.
function audits.stand(loc, raw, r)
  local st = r and state(r) or DELAYED
  if st == RESERVED then return st, audits.is_leased(loc, r) end
  if st == DEAD then return st, call('ZSCORE', KEY.dead, deaths.entry(loc, lane_of(raw))) and true end
  if st ~= DELAYED then return st, false end
  if was_ready_at_once(raw, r) then return READY end
  local due, lane = due_six(raw, r), lane_of(raw)
  local at, entry = read('>I6', due), entry_of(loc, due)
  local score = call('ZSCORE', due_key(lane), entry)
  if score then return DELAYED, tonumber(score) == at end
  if not is_far(at) then return READY end
  local slot = string.format('%.0f', floor(at / WIDTH))
  if not call('ZSCORE', KEY.slots, slot) then return DELAYED, false end
  if call('SISMEMBER', KEY.void .. slot, entry .. lane) == 1 then return DELAYED, false end
  return DELAYED
end

-- What is known of a job that waits in a list, for the walk through the lists.
function audits.waiting(loc, raw, r) return loc .. due_six(raw, r) .. lane_of(raw) .. audits.attempts(r) end

-- Whether a job is lost of which that was known: 'lost', 'again' where another list has it now,
-- nothing where it has moved on. A job leaves a list only by another attempt, or for another time;
-- so one that was not met by a walk, and has neither, was not in it. `place` is 0 where it was
-- missing where it can be looked up.
function audits.judge(loc, known, place)
  local raw, r = records[loc], runs[loc]
  if not raw then return nil end
  local st, is_there = audits.stand(loc, raw, r)
  if is_there == false then return 'lost', st end
  if is_there or place == 0 or audits.waiting(loc, raw, r) ~= known then return nil end
  if st ~= place then return 'again', st end
  return 'lost', st
end

-- What lane lacks of what leads to its jobs: 'ready' its turn with who takes, or with who resumes
-- its topic, 'due' that with the carrier. Its row must have been read, and its topic's.
function audits.lacks(lane)
  local lacks, first = {}, first_score(due_key(lane))
  if call('EXISTS', queue(lane)) == 1 then
    local has_turn = call('ZSCORE', is_pull(lane) and KEY.pulls or KEY.lanes, lane)
    lacks.ready = not has_turn and not topics.is_parked(lane) or nil
  end
  if first > 0 then
    local turn = call('ZSCORE', KEY.turns, lane)
    lacks.due = (not turn or tonumber(turn) > max(first, NOW)) and first or nil
  end
  return lacks
end

-- A lane's row in the shard's hash, and not one of its other fields; or that of a topic.
function audits.is_lane(name, row)
  return #name == 8 and #row > 29 and string.find(row, ' ', 30, true) ~= nil
end
function audits.topic_of(name, row) return topics.is_row(row) and string.match(name, '^topic:(.+)$') end

-- Rows of lanes, and those of their topics.
function audits.load_lanes(lanes)
  rows_load(lanes)
  local fields = {}
  for _, lane in ipairs(lanes) do
    if rows[lane] then fields[#fields + 1] = topics.field(topic_in(lane_words(lane))) end
  end
  rows_load(fields)
end

-- What of the shard's words on when to look next is too late, and what it is to be.
function audits.moments()
  local wrong = {}
  for name, key in pairs({lease_at = KEY.leases, dead_at = KEY.dead, tell_at = KEY.outbox}) do
    local first = first_score(key)
    if first > 0 and (shard[name] == 0 or shard[name] > first) then wrong[name] = first end
  end
  if audits.told_slot ~= audits.first_slot then wrong.slot = audits.first_slot end
  return wrong
end
