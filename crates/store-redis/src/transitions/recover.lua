-- recover: reserved and past its deadline -> ready again at once; dead by `lost` after too many lost leases in a row;
--   cancelled where that was requested. Pull jobs are only returned: the carrier settles them as failed by their
--   receipts; their batch is examined again soon in case it does not. Only for the carrier that has the shard.
-- KEYS  shard
-- ARGV  epoch, limit, longest sleep (ms), retention (ms), keep (ms), cap (tombstones), most leases lost in a row, the longest
--   lease (ms)
-- Returns {} if another carrier has the shard, or {how many are ready again, how many are dead, waits in us...,
--   {{locator, job state, record, lane name or ''}, ...} for pull}
-- Uses archive, carrier, dead_letters, due_index, events, lanes, leases, outcomes, ready, records, shard, tombs.
-- How many batches, and about how many of their jobs, one call examines.
local MOST_BATCHES, MOST_SEEN = 32, 2000

-- Splits the jobs of a batch that are still reserved: returns those whose lease has run out, at most `limit`, the others,
-- and the first deadline of these. With `longest` (ms) the leases begin anew first (`leases.anew`).
local function split(number, batch, limit, longest)
  local locs, over, kept, first = leases.locs(batch), {}, {}, nil
  jobs.load_states(locs)
  for _, loc in ipairs(locs) do
    local s = states[loc]
    if leases.holds(number, s) then
      local at = longest and leases.anew(number, s, longest) or state.deadline(s)
      if at ~= state.deadline(s) then jobs.put(loc, state.with_deadline(s, at)) end
      if at <= NOW and #over < limit then
        over[#over + 1] = loc
      else
        kept[#kept + 1] = loc
        if not first or at < first then first = at end
      end
    end
  end
  return over, kept, first
end

-- Reads batches that are due. Returns the locators of jobs whose lease has run out, at most `left`; the batches, each
-- with the jobs that it keeps; these by their numbers; and whether more from before the clock was set back may be left.
local function expired_leases(left, longest)
  local over, looked, seen, by_number = {}, {}, 0, {}
  local names, batches, n_due = leases.due(MOST_BATCHES)
  for i, name in ipairs(names) do
    if left <= 0 or seen >= MOST_SEEN then break end
    local number, batch = leases.number(name), batches[i]
    local expired, kept, first = {}, {}, nil
    if batch then expired, kept, first = split(number, batch, left, i > n_due and longest) end
    for _, loc in ipairs(expired) do over[#over + 1] = loc end
    left = left - #expired
    seen = seen + (batch and #batch / 12 or 1)
    by_number[number] = {name = name, kept = kept, first = first}
    looked[#looked + 1] = by_number[number]
  end
  return over, looked, by_number, #names - n_due == MOST_BATCHES
end

-- Removes batches that keep no job, and sets when the others are examined next.
local function save_batches(looked)
  local later, over = {}, {}
  for _, batch in ipairs(looked) do
    local name = batch.name
    if #batch.kept == 0 then
      over[#over + 1] = name
    else
      if name == leases.number(name) then later[#later + 1], later[#later + 2] = name, concat(batch.kept) end
      shard.wake_at(leases.plan(name, batch.first))
    end
  end
  shard.set('lease_at', first_score(KEY.leases, over))
  leases.drop(over)
  leases.put(later)
end

function scripts.recover(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return {} end
  local most = tonumber(args[7])
  local over, looked, by_number, has_more = expired_leases(tonumber(args[2]), tonumber(args[8]))

  jobs.load(over)
  local pull_lanes = {}
  for _, loc in ipairs(over) do
    local lane = records[loc] and record.lane(records[loc])
    if lane and lanes.is_pull(lane) then pull_lanes[#pull_lanes + 1] = lane end
  end
  shard.load_rows(pull_lanes)
  local recovered, dead, pulled = 0, {}, {}
  for _, loc in ipairs(over) do
    local raw, s = records[loc], states[loc]
    local lane = raw and record.lane(raw)
    if not (raw and s) then
      -- A job state without its record is ignored.
    elseif state.is_cancel_requested(s) then
      events.lost(loc, lane, s)
      events.cancelled(loc, lane, RESERVED, events.REQUESTED)
      archive.note(archive.CANCELLED, loc, lane, s)
      tombs.add(loc, tombs.of(raw, state.with_loss(s, RESERVED), CANCELLED, state.settled(s)), record.is_external(raw))
      lanes.move(lane, RESERVED, CANCELLED, 1)
    elseif lanes.is_pull(lane) then
      pulled[#pulled + 1] = {loc, s, raw, lanes.name(lane) or ''}
      local batch = by_number[state.lease(s)]
      batch.kept[#batch.kept + 1] = loc
      batch.first = min(batch.first or NOW + leases.SOON, NOW + leases.SOON)
    elseif state.lost(s) + 1 >= most then
      lanes.move(lane, RESERVED, DEAD, 1)
      events.lost(loc, lane, s)
      events.dead_by_loss(loc, lane, 'lost')
      jobs.put(loc, state.with_reason(state.with_loss(s, DEAD), 'lost'))
      archive.note_death(loc, lane, states[loc])
      dead[#dead + 1] = dead_letters.entry(loc, lane)
    else
      ready.add(lane, due_index.entry(loc, jobs.due(raw, s)))
      events.lost(loc, lane, s)
      events.step(loc, lane, RESERVED, READY, 'lease expired')
      lanes.move(lane, RESERVED, READY, 1)
      jobs.put(loc, state.with_loss(s, DELAYED))
      recovered = recovered + 1
    end
  end

  outcomes.save(dead, {}, {}, args[5], args[6])
  save_batches(looked)
  if has_more then shard.set('lease_at', NOW) end
  local waits = carrier.waits(tonumber(args[3]), tonumber(args[4]))
  shard.close()
  return {recovered, #dead, waits[1], waits[2], waits[3], waits[4], waits[5], pulled}
end
