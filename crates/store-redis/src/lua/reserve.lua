-- reserve: ready -> reserved. Lanes take turns; those full for the caller are passed, those of paused
--   topics are parked.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), limit (jobs), lane room, receipt bits (8 bytes), lease
--   margin (ms), default timeout (ms), longest stretch (ms), byte budget, then id and room of
--   lanes with less
-- Returns {now in us, 1 when more can be taken and 2 more while the shard is watched, {lanes in words that have more than their
--   room}, {lane in words, run, locator, record, locator, record, ...}, ...}
parts.RESERVE = {'next', 'ready', 'reserved', 'lease', 'lease_at', 'paused'}

-- A run for a first hand-over, but for its lease.
local FIRST = char(RESERVED, 0) .. NO_TIME .. pack('>I4', 1) .. string.rep('\0', 5)
local FIRST_END = NO_LEASE .. NO_TIME .. NO_ATTEMPT

-- Its run: one more attempt, under a new lease. `stamp` is receipt and deadline, packed.
local function with_lease(r, stamp)
  return char(RESERVED) .. sub(r, 2, 8) .. pack('>I4', read('>I4', r, 9) + 1) .. sub(r, 13, 17) .. stamp .. sub(r, 40)
end

-- The bytes that it takes; a large payload's size stands in its place.
local function weight(raw)
  return byte(raw, 13) == 0 and #raw or #raw + read('>I4', raw, #raw - 3)
end

-- Adds a job to the answer, to the last group when that has the same lane and run.
local function give(answer, words, loc, raw)
  local group, r = answer[#answer], runs[loc]
  if type(group) ~= 'table' or group[1] ~= words or group[2] ~= r then
    group = {words, r}
    answer[#answer + 1] = group
  end
  local n = #group
  group[n + 1], group[n + 2] = loc, raw
end

-- What a caller was given by these numbers and still has.
local function given(answer, numbers)
  for at = 1, #numbers, 8 do
    local number = sub(numbers, at, at + 7)
    local batch, lanes = call('HGET', KEY.batches, number), {}
    local locs = batch and batch_locs(batch) or {}
    load(locs)
    for _, loc in ipairs(locs) do
      if records[loc] then lanes[#lanes + 1] = lane_of(records[loc]) end
    end
    rows_load(lanes)
    for _, loc in ipairs(locs) do
      local r, words = runs[loc], records[loc] and lane_words(lane_of(records[loc]))
      if words and r and state(r) == RESERVED and lease_number(r) == number then
        give(answer, words, loc, records[loc])
      end
    end
  end
  return answer
end

-- All of the edge between `begin` and `close`. Its arguments are the first n.
function parts.reserve(args, n_args)
  local caller, left, others = args[1], tonumber(args[3]), tonumber(args[4])
  local bits, margin, default, stretch = args[5], tonumber(args[6]), tonumber(args[7]), tonumber(args[8])
  local budget, answer = tonumber(args[9]), {NOW_US, events.on and 3 or 1, {}}
  local numbers = replayed(caller, args[2])
  if numbers then return given(answer, numbers) end

  -- The number of a batch only grows, past a fail-over that has lost the last numbers too.
  local last = max(shard.lease, NOW_US - 1)
  -- What is reserved with the same timeout is one batch.
  local batches, taken_now = {}, 0
  local function batch_for(packed)
    local batch = batches[packed]
    if batch then return batch end
    local timeout = read('>I4', packed)
    local ends = NOW_UP + min(timeout == 0 and default or timeout, stretch) + margin
    last = last + 1
    local number = pack('>I8', last)
    local stamp = number .. bits .. six(ends)
    batch = {number = number, stamp = stamp, first = FIRST .. stamp .. FIRST_END, ends = ends, locs = {}}
    batches[packed] = batch
    return batch
  end

  local rooms = {}
  for i = 10, n_args, 2 do rooms[args[i]] = tonumber(args[i + 1]) end
  local window = 64 + (n_args - 9) / 2
  local all = ready_lanes(window)
  rows_load(all)
  local lanes, held = topics.split(all)
  local open_lanes = 0
  for _, lane in ipairs(lanes) do if rooms[lane] ~= 0 then open_lanes = open_lanes + 1 end end
  local share = ceil(left / max(open_lanes, 1))

  -- Looks at the first of a lane; takes nothing away yet. Returns how many it has passed.
  local n_writes = 0
  local function take(lane, entries, room)
    local words, locs, n, most = lane_words(lane), {}, 0, min(#entries, room)
    for i = 1, most do locs[i] = sub(entries[i], 1, 12) end
    load(locs)
    local group, size
    while n < most and budget > 0 do
      local loc = locs[n + 1]
      local raw, r = records[loc], runs[loc]
      -- An entry that stands twice is taken once: its job is reserved by then.
      if raw and not (r and byte(r) ~= DELAYED) and due_six(raw, r) == sub(entries[n + 1], 13)
        and lane_of(raw) == lane then
        -- A lane that nothing is known of keeps what it has.
        if not words then break end
        local batch = batch_for(sub(raw, 14, 17))
        local given_run = r and with_lease(r, batch.stamp) or batch.first
        if not group or group[2] ~= given_run then
          group, size = {words, given_run}, 2
          answer[#answer + 1] = group
        end
        group[size + 1], group[size + 2] = loc, raw
        size = size + 2
        runs[loc] = given_run
        writes[n_writes + 1], writes[n_writes + 2] = loc, given_run
        n_writes = n_writes + 2
        batch.locs[#batch.locs + 1] = loc
        budget, left, taken_now = budget - weight(raw), left - 1, taken_now + 1
      end
      n = n + 1
    end
    return n
  end

  local visits, passed, more = {}, {}, #all == window and 1 or 0
  for _, lane in ipairs(lanes) do
    local bound = rooms[lane] or others
    local room = min(bound, share, left)
    if bound == 0 then
      passed[#passed + 1] = lane_words(lane)
    elseif room == 0 or budget <= 0 then
      more = 1
      break
    else
      local entries = ready_first(lane, room)
      local before = taken_now
      local n = take(lane, entries, room)
      -- Of a lane that nothing is known of there is no more to be had.
      if n < #entries and lane_words(lane) then
        if bound > n then more = 1 else passed[#passed + 1] = lane_words(lane) end
      end
      visits[#visits + 1] = {lane, n, n == #entries, taken_now - before}
    end
  end

  if taken_now > 0 then
    local known, given_now = {}, {}
    for _, batch in pairs(batches) do
      known[#known + 1], known[#known + 2] = batch.number, batch_of(batch.number, batch.locs, batch.ends)
      given_now[#given_now + 1] = batch.number
    end
    table.sort(given_now)
    batches_put(known)
    remember(caller, args[2], given_now)
    set('lease', last)
    for _, v in ipairs(visits) do
      if v[4] > 0 then move(v[1], READY, RESERVED, v[4]) end
    end
  end
  save()
  topics.park(held, KEY.lanes)
  for i, v in ipairs(visits) do ready_pop(v[1], v[2], v[3], i) end
  answer[2], answer[3] = more + (events.on and 2 or 0), passed
  return answer
end

function edges.reserve(args)
  begin(parts.RESERVE)
  local answer = parts.reserve(args, #args)
  close()
  return answer
end
