-- Moves of one job by its name, as reschedule, run and revive make them. Each call brings a
-- token, which stays in the job's run, so that its repetition is known whatever has become of
-- the job meanwhile. `begin` must have read these fields.
local moves = {
  fields = {'next', 'segment', 'slot', 'delayed', 'ready', 'dead', 'dead_at'},
  -- The run of a job that was never handed over.
  untried = char(DELAYED) .. string.rep('\0', RUN - 1),
}

-- Record, run and state of a job; without the record nil, nil, nil, and the answer.
function moves.look(loc)
  load({loc})
  local raw, r = records[loc], runs[loc]
  if raw then return raw, r, state_of(loc, raw, r) end
  local tomb = tomb_get(loc)
  return nil, nil, nil, tomb and {409, tomb} or {}
end

function moves.is_repeated(r, token) return r and sub(mark(r), 1, 8) == token end

-- The answer where nothing is done: that it is as it was to be, or that it cannot be.
function moves.left(loc, st, is_right)
  return described(is_right and 200 or 409, st, records[loc], runs[loc])
end

-- The run with another mark.
function moves.marked(r, token, due)
  return sub(r, 1, RUN + byte(r, 66) + byte(r, 67)) .. token .. due
end

-- The job is due now, and ready. `from` is its state, `r` the run that it goes on with.
function moves.make_ready(loc, from, r, token)
  local raw, old, due = records[loc], runs[loc], six(NOW)
  append(ready_for, lane_of(raw), entry_of(loc, due))
  save_ready('RPUSH')
  wake_takers()
  put(loc, moves.marked(with_due(r, NOW), token, due))
  save()
  if from == DELAYED then unschedule(loc, raw, old) else dead_remove({loc}) end
  move(from, READY, 1)
  close()
  return described(200, READY, raw, runs[loc])
end
