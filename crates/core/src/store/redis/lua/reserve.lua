-- reserve: ready -> reserved. Lanes take turns; those full for the caller are passed.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), limit (jobs), lane room, receipt bits (8 bytes), lease
--   margin (ms), default timeout (ms), longest stretch (ms), byte budget, then id and room of
--   lanes with less
-- Returns {now in us, 1 when more can be taken, {lanes in words that have more than their
--   room}, {lane in words, run, locator, record, locator, record, ...}, ...}
local RESERVE = {'next', 'ready', 'reserved', 'lease', 'lease_at'}

-- A run for a first hand-over, but for its lease.
local FIRST = char(RESERVED, 0) .. NO_TIME .. pack('>I4', 1) .. string.rep('\0', 5)
local FIRST_END = NO_LEASE .. NO_TIME .. NO_ATTEMPT

-- Its run: one more attempt, under a new lease. `stamp` is receipt and deadline, packed.
local function with_lease(r, stamp)
  return char(RESERVED) .. sub(r, 2, 8) .. pack('>I4', read('>I4', r, 9) + 1) .. sub(r, 13, 17) .. stamp .. sub(r, 40)
end

-- The bytes that it takes; a large payload's size stands in its place.
local function weight(raw)
  return is_external(raw) and #raw + read('>I4', raw, #raw - 3) or #raw
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
    lanes_load(lanes)
    for _, loc in ipairs(locs) do
      local r = runs[loc]
      if r and state(r) == RESERVED and lease_number(r) == number then
        give(answer, lane_words(lane_of(records[loc])), loc, records[loc])
      end
    end
  end
  return answer
end

function edges.reserve(args)
  begin(RESERVE)
  local caller, left, others = args[1], tonumber(args[3]), tonumber(args[4])
  local bits, margin, default, stretch = args[5], tonumber(args[6]), tonumber(args[7]), tonumber(args[8])
  local budget, answer = tonumber(args[9]), {NOW_US, 1, {}}
  local numbers = replayed(caller, args[2])
  if numbers then return given(answer, numbers) end

  -- The number of a batch only grows, past a fail-over that has lost the last numbers too.
  local last = max(shard.lease, NOW_US - 1)
  -- What is reserved with the same timeout is one batch.
  local batches, taken_now = {}, 0
  local function batch_for(timeout)
    local batch = batches[timeout]
    if batch then return batch end
    local ends = NOW_UP + min(timeout == 0 and default or timeout, stretch) + margin
    last = last + 1
    local number = pack('>I8', last)
    local stamp = number .. bits .. six(ends)
    batch = {number = number, stamp = stamp, first = FIRST .. stamp .. FIRST_END, ends = ends, locs = {}}
    batches[timeout] = batch
    return batch
  end

  local rooms = {}
  for i = 10, #args, 2 do rooms[args[i]] = tonumber(args[i + 1]) end
  local window = 64 + (#args - 9) / 2
  local lanes = ready_lanes(window)
  lanes_load(lanes)
  local open_lanes = 0
  for _, lane in ipairs(lanes) do if rooms[lane] ~= 0 then open_lanes = open_lanes + 1 end end
  local share = ceil(left / max(open_lanes, 1))

  -- Looks at the first of a lane; takes nothing away yet. Returns how many it has passed.
  local function take(lane, entries, room)
    local words, locs, n = lane_words(lane), {}, 0
    for i = 1, min(#entries, room) do locs[i] = sub(entries[i], 1, 12) end
    load(locs)
    while n < #locs and budget > 0 do
      n = n + 1
      local loc, entry = locs[n], entries[n]
      local raw, r = records[loc], runs[loc]
      -- An entry that stands twice is taken once: its job is reserved by then.
      if words and raw and not (r and state(r) ~= DELAYED) and due_six(raw, r) == sub(entry, 13)
        and read('>I6', entry, 13) <= NOW then
        local batch = batch_for((read('>I4', raw, 14)))
        put(loc, r and with_lease(r, batch.stamp) or batch.first)
        batch.locs[#batch.locs + 1] = loc
        give(answer, words, loc, raw)
        budget, left, taken_now = budget - weight(raw), left - 1, taken_now + 1
      end
    end
    return n
  end

  local visits, passed, more = {}, {}, #lanes == window and 1 or 0
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
      local n = take(lane, entries, room)
      if n < #entries then
        if bound > n then more = 1 else passed[#passed + 1] = lane_words(lane) end
      end
      visits[#visits + 1] = {lane, n, n == #entries}
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
    move(READY, RESERVED, taken_now)
  end
  save()
  for i, v in ipairs(visits) do ready_pop(v[1], v[2], v[3], i) end
  close()
  answer[2], answer[3] = more, passed
  return answer
end
