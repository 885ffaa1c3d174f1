-- recover: reserved and past its deadline -> ready again at once; dead by `lost` after
--   too many in a row; cancelled where that was asked for. Jobs for pull are answered, to be
--   settled as failed by their receipts, and looked at again soon in case nobody does.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms), keep (ms), cap (tombstones), most lost in a row
-- Returns {-1} fenced, or {recovered, lost, waits in us..., {{lane in words or '', ...}, locator,
--   run, record, ...} for pull}
local RECOVER = {'epoch', 'next', 'segment', 'segment_at', 'segment_was', 'segment_size',
  'forgotten_early', 'ready', 'reserved', 'dead', 'cancelled', 'slot', 'lease_at', 'dead_at', 'tell_at', 'lanes', 'topics'}
-- So many batches, and about so many of their jobs, are looked at.
local MOST_BATCHES, MOST_SEEN = 32, 2000
-- When leases for pull that have run out are looked at again (ms).
local SOON = 1000

-- Splits what a batch holds: jobs whose lease has run out, and those still to be looked at.
local function split(number, batch, limit)
  local locs, over, kept, ends = batch_locs(batch), {}, {}, nil
  load_runs(locs)
  for _, loc in ipairs(locs) do
    local r = runs[loc]
    if r and state(r) == RESERVED and lease_number(r) == number then
      local at = deadline(r)
      if at <= NOW and #over < limit then
        over[#over + 1] = loc
      else
        kept[#kept + 1] = loc
        if not ends or at < ends then ends = at end
      end
    end
  end
  return over, kept, ends
end

function edges.recover(args)
  begin(RECOVER)
  if is_fenced(args[1]) then return {-1} end
  local left, most = tonumber(args[2]), tonumber(args[7])
  local over, looked, later, seen, of_number = {}, {}, {}, 0, {}
  local numbers, batches = batches_due(MOST_BATCHES)
  for i, number in ipairs(numbers) do
    if left <= 0 or seen >= MOST_SEEN then break end
    local batch = batches[i]
    local lapsed, kept, ends = {}, {}, nil
    if batch then lapsed, kept, ends = split(number, batch, left) end
    for _, loc in ipairs(lapsed) do over[#over + 1] = loc end
    left = left - #lapsed
    seen = seen + (batch and #batch / 12 or 1)
    looked[#looked + 1] = {number, kept, ends}
    of_number[number] = looked[#looked]
  end

  load(over)
  local pull_lanes = {}
  for _, loc in ipairs(over) do
    local lane = records[loc] and lane_of(records[loc])
    if lane and is_pull(lane) then pull_lanes[#pull_lanes + 1] = lane end
  end
  rows_load(pull_lanes)
  local recovered, dead, pulled = 0, {}, {{}}
  for _, loc in ipairs(over) do
    local raw, r = records[loc], runs[loc]
    if not (raw and r) then
      -- A run without its record.
    elseif is_cancel_requested(r) then
      local lane = lane_of(raw)
      events.lost(loc, lane, r)
      events.cancelled(loc, lane)
      bury(loc, tomb_of(raw, with_loss(r, RESERVED), CANCELLED, settled(r)), is_external(raw))
      move(lane, RESERVED, CANCELLED, 1)
    elseif is_pull(lane_of(raw)) then
      local n, batch = #pulled, of_number[lease_number(r)]
      pulled[n + 1], pulled[n + 2], pulled[n + 3] = loc, r, raw
      append(pulled, 1, lane_words(lane_of(raw)) or '')
      batch[2][#batch[2] + 1] = loc
      batch[3] = min(batch[3] or NOW + SOON, NOW + SOON)
    elseif lost(r) + 1 >= most then
      move(lane_of(raw), RESERVED, DEAD, 1)
      events.lost(loc, lane_of(raw), r)
      events.dead_by_loss(loc, lane_of(raw), 'lost')
      put(loc, with_reason(with_loss(r, DEAD), 'lost'))
      dead[#dead + 1] = deaths.entry(loc, lane_of(raw))
    else
      append(ready_for, lane_of(raw), entry_of(loc, due_six(raw, r)))
      events.lost(loc, lane_of(raw), r)
      move(lane_of(raw), RESERVED, READY, 1)
      put(loc, with_loss(r, DELAYED))
      recovered = recovered + 1
    end
  end

  local untold = outbox.entries(dead)
  save_ready('LPUSH')
  wake_takers()
  deaths.add(dead)
  outbox.add(untold)
  save_tombs(tonumber(args[5]), tonumber(args[6]))
  save()
  save_drops()
  local over_now = {}
  for _, b in ipairs(looked) do
    local number, kept, ends = b[1], b[2], b[3]
    if #kept == 0 then
      over_now[#over_now + 1] = number
    else
      later[#later + 1], later[#later + 2] = number, batch_of(number, kept, ends)
    end
  end
  set('lease_at', first_score(KEY.leases, over_now))
  batches_drop(over_now)
  batches_put(later)
  local waits = rest(tonumber(args[3]), tonumber(args[4]))
  close()
  return {recovered, #dead, waits[1], waits[2], waits[3], waits[4], pulled}
end
