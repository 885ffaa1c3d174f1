-- pull: ready -> reserved, for a consumer: the first jobs of one lane for pull, unless its topic is
--   paused.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), lane id, limit (jobs), receipt bits (8 bytes), time to run
--   (ms, 0 for that of each job), the one of jobs that name none (ms), byte budget
-- Returns {now in us, 1 when more can be taken, lane in words, then per job: locator, run, record}
local PULL = {'next', 'ready', 'reserved', 'lease', 'lease_at', 'paused'}
-- So many entries of jobs that have gone are passed in one call, beside those of jobs for the caller.
local MOST_GONE = 100

-- Its run: one more attempt, under a new lease. `stamp` is receipt and deadline, packed.
local function leased(r, stamp)
  if not r then return char(RESERVED, 0) .. NO_TIME .. pack('>I4', 1) .. string.rep('\0', 5) .. stamp .. string.rep('\0', RUN - 39) end
  return char(RESERVED) .. sub(r, 2, 8) .. pack('>I4', read('>I4', r, 9) + 1) .. sub(r, 13, 17) .. stamp .. sub(r, 40)
end

local function give(answer, loc)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = loc, runs[loc], records[loc]
end

-- What a caller was given by these numbers and still has.
local function given(answer, numbers)
  for at = 1, #numbers, 8 do
    local number = sub(numbers, at, at + 7)
    local batch = call('HGET', KEY.batches, number)
    local locs = batch and batch_locs(batch) or {}
    load(locs)
    for _, loc in ipairs(locs) do
      local r = runs[loc]
      if records[loc] and r and state(r) == RESERVED and lease_number(r) == number then give(answer, loc) end
    end
  end
  return answer
end

function edges.pull(args)
  local lane, limit, bits, budget = args[3], tonumber(args[4]), args[5], tonumber(args[8])
  begin(PULL, {lane})
  -- Where the last job of a lane was cancelled nothing is known of it; its entries are still there.
  local words = lane_words(lane)
  local numbers = replayed(args[1], args[2])
  if numbers then return words and given({NOW_US, 1, words}, numbers) or {NOW_US, 1, ''} end

  local _, held = topics.split({lane})
  if #held > 0 then
    if call('ZSCORE', KEY.pulls, lane) then topics.park(held, KEY.pulls) end
    return {NOW_US, 0, words}
  end

  -- The number of a batch only grows, past a fail-over that has lost the last numbers too.
  local last, batches, answer = max(shard.lease, NOW_US - 1), {}, {NOW_US, 0, words or ''}
  -- What is reserved for the same time is one batch.
  local function batch_for(timeout)
    if batches[timeout] then return batches[timeout] end
    local ends = NOW_UP + timeout
    last = last + 1
    local number = pack('>I8', last)
    batches[timeout] = {number = number, stamp = number .. bits .. six(ends), ends = ends, locs = {}}
    return batches[timeout]
  end
  local function timeout_of(raw)
    local wanted, own = tonumber(args[6]), read('>I4', raw, 14)
    return wanted > 0 and wanted or own > 0 and own or tonumber(args[7])
  end

  -- `n` entries are passed, of jobs that are taken or have gone.
  local n, taken, is_all, is_unknown = 0, 0, false, false
  for _, most in ipairs({limit, MOST_GONE}) do
    local entries = call('LRANGE', queue(lane), n, n + most)
    local locs, unseen, i = {}, {}, 0
    for at = 1, min(#entries, most) do
      local loc = sub(entries[at], 1, 12)
      locs[at] = loc
      if runs[loc] == nil then unseen[#unseen + 1] = loc end
    end
    load(unseen)
    while i < #locs and taken < limit and budget > 0 do
      local loc, due = locs[i + 1], sub(entries[i + 1], 13)
      local raw, r = records[loc], runs[loc]
      -- An entry that stands twice is taken once: its job is reserved by then.
      if raw and not (r and byte(r) ~= DELAYED) and due_six(raw, r) == due and lane_of(raw) == lane then
        -- A lane that nothing is known of keeps what it has.
        is_unknown = not words
        if is_unknown then break end
        local batch = batch_for(timeout_of(raw))
        put(loc, leased(r, batch.stamp))
        batch.locs[#batch.locs + 1] = loc
        budget = budget - #raw - (is_external(raw) and read('>I4', raw, #raw - 3) or 0)
        give(answer, loc)
        taken = taken + 1
      end
      i = i + 1
    end
    n, is_all = n + i, i == #entries
    if is_all or is_unknown or taken == limit or budget <= 0 then break end
  end

  local known, given_now = {}, {}
  for _, batch in pairs(batches) do
    known[#known + 1], known[#known + 2] = batch.number, batch_of(batch.number, batch.locs, batch.ends)
    given_now[#given_now + 1] = batch.number
  end
  if taken > 0 then
    table.sort(given_now)
    batches_put(known)
    remember(args[1], args[2], given_now)
    set('lease', last)
    move(lane, READY, RESERVED, taken)
  end
  save()
  if is_all then
    call('ZREM', KEY.pulls, lane)
    if n > 0 then call('UNLINK', queue(lane)) end
  else
    if not is_unknown then answer[2] = 1 end
    if n > 0 then call('LTRIM', queue(lane), n, -1) end
  end
  close()
  return answer
end
