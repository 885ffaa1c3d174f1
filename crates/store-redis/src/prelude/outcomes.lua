-- Outcomes: how the outcome of a lease changes its job, and how these changes are written.
--
-- An outcome is kind, flags (1 if the payload is external, 2 if the job has tags), delay (6 bytes, ms), and the failed
-- attempt with its reason, packed as at the end of a job state. A success with a notice ends with the answer of the
-- receiver, packed as in the outbox.
-- `outcomes.settle` is in transitions/settle.lua.
-- Uses archive, dead_letters, due_index, events, lanes, outbox, ready, records, tag_index, tombs.
local outcomes = {
  COMPLETE = 1, RETRY = 2, BURY = 3, RELEASE = 4, RETURN = 5,
  -- Answers.
  APPLIED = 1, REPLAYED = 2, LATE = 3, STALE = 4,
}
do
  local COMPLETE, RETRY, BURY, RETURN = outcomes.COMPLETE, outcomes.RETRY, outcomes.BURY, outcomes.RETURN
  -- The length of a success without a notice.
  local PLAIN = 22
  -- The flags of an outcome.
  local EXTERNAL, TAGGED = 1, 2

  function outcomes.delay(o) return (read('>I6', o, 3)) end

  local function ends(loc, tomb, s, code, flags, lane)
    if flags >= TAGGED and not records[loc] then tag_index.leave_unread(loc) end
    archive.note(code == DONE and archive.DONE or archive.CANCELLED, loc, lane, s)
    tombs.add(loc, tombs.with_state(tomb, s, code), flags % TAGGED == EXTERNAL)
    lanes.move(lane, RESERVED, code, 1)
  end

  local function goes_on(loc, s, code, lane, lease)
    lanes.move(lane, RESERVED, code, 1)
    jobs.put(loc, state.with_settled(s, code == READY and DELAYED or code, lease))
  end

  local function goes_on_later(loc, s, o, lane, lease)
    local at = NOW_UP + outcomes.delay(o)
    due_index.add(lane, at, due_index.entry(loc, six(at)))
    goes_on(loc, state.with_due(s, at), DELAYED, lane, lease)
  end

  -- Adds a success to the list `noted`, if it has a notice.
  local function note_success(noted, loc, lane, s, o)
    if #o > PLAIN then noted[#noted + 1] = {loc, lane, s, sub(o, PLAIN + 1)} end
  end

  -- Applies the outcome of a current lease and returns APPLIED; `save` writes the changes. A requested cancel replaces
  -- any outcome but a success. `tomb` is the tombstone of the job as done; it also holds the due time for which the lease
  -- was granted. Entries of jobs that die are appended to `dead`, successes with a notice to `noted`.
  function outcomes.apply(loc, tomb, o, lane, lease, dead, noted)
    local s, kind, flags = states[loc], byte(o), byte(o, 2)
    events.settled(loc, lane, s, o)
    if kind == COMPLETE then
      ends(loc, tomb, s, DONE, flags, lane)
      note_success(noted, loc, lane, s, o)
    elseif state.is_cancel_requested(s) then
      ends(loc, tomb, s, CANCELLED, flags, lane)
    elseif kind == RETRY then
      goes_on_later(loc, state.with_failure(s, sub(o, 9)), o, lane, lease)
    elseif kind == BURY then
      dead[#dead + 1] = dead_letters.entry(loc, lane)
      goes_on(loc, state.with_failure(s, sub(o, 9)), DEAD, lane, lease)
      archive.note_death(loc, lane, states[loc])
    elseif outcomes.delay(o) > 0 then
      goes_on_later(loc, s, o, lane, lease)
    else
      ready.add(lane, due_index.entry(loc, sub(tomb, 10, 15)))
      goes_on(loc, kind == RETURN and state.without_attempt(s) or s, READY, lane, lease)
    end
    return outcomes.APPLIED
  end

  -- Handles a receipt that is no longer current. A success completes a job that has not ended since, or is dead with the
  -- reason `lost`, and returns LATE; all else, also the receipt of an earlier job with the same key, changes nothing and
  -- returns STALE. The job is added to `undead` or `undelayed` if it is to be removed from the dead letters or the due
  -- index, and to `noted` if the success has a notice.
  function outcomes.late_success(loc, o, lease, undead, undelayed, noted)
    local is_complete = byte(o) == COMPLETE
    jobs.load({loc})
    local raw, s = records[loc], states[loc]
    if not (raw and s) then return outcomes.STALE end
    local code = due_index.code(loc, raw, s)
    local is_over = code == DEAD and state.reason(s) ~= 'lost'
    local is_of_another = read('>I8', lease) < read('>I6', raw, 7) * 1000 or state.is_of_former_generation(s, lease)
    if not is_complete or is_over or is_of_another then return outcomes.STALE end
    local lane = record.lane(raw)
    if code == DEAD then undead[#undead + 1] = dead_letters.entry(loc, lane) end
    if code == DELAYED then undelayed[#undelayed + 1] = {loc, raw, s} end
    lanes.move(lane, code, DONE, 1)
    events.done(loc, lane, code)
    note_success(noted, loc, lane, s, o)
    archive.note(archive.DONE, loc, lane, s)
    tombs.add(loc, tombs.of(raw, s, DONE, lease), record.is_external(raw))
    return outcomes.LATE
  end

  -- Writes the jobs that `apply` and `late_success` have ended or changed. New index entries come first, then the jobs,
  -- so that a script that is cut short loses no job. The caller removes `undead`.
  function outcomes.save(dead, noted, undelayed, keep, cap)
    local notices = outbox.notices(dead, noted)
    archive.save()
    for _, job in ipairs(undelayed) do due_index.remove(unpack(job)) end
    due_index.save()
    ready.save('LPUSH')
    dead_letters.add(dead)
    outbox.add(notices)
    tombs.save(tonumber(keep), tonumber(cap))
    jobs.save()
    jobs.save_removed()
  end
end
