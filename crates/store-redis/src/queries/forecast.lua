-- Forecast: how many delayed jobs come due in which slot of time. A part of the due index that is too large to read is
-- counted by a sample. Slots of a forecast have numbers from 0; -1 stands for jobs that are due already.
-- Uses due_index, lanes, lateness, records, shard.

-- How many entries a call reads, the fewest that it reads of a slot of a lane, and how much work a sample may take.
local MOST_READ, LEAST_OF_SLOT, MOST_WORK = 700, 32, 200000000
-- If lanes are many, one in ONE_OF near entries is read, and slots are counted only of lanes with LARGE_LANE entries.
local ONE_OF, LARGE_LANE = 64, 20000
-- The slots: when the first begins (ms), how long each is (ms), and how many there are; and the most entries of a part
-- that are read.
local first, length, count, most
-- Entries that were counted one by one, by slot; parts of which a sample was read; how many entries this call may
-- still read; whether no job of the shard has a job state; and whether its lanes with near jobs are many.
local counted, parts, left, is_untried, is_of_many

local function begin(args, base)
  shard.begin()
  first, length, count = tonumber(args[base]), tonumber(args[base + 1]), tonumber(args[base + 2])
  most = tonumber(args[base + 3])
  counted, parts, left = {}, {}, MOST_READ
  is_untried = call('HLEN', KEY.states) == 0
  -- One stream of random numbers for all parts of a call, and others in other calls, so that the errors of parts are
  -- independent. The same call has the same sample, so that a displayed forecast does not flicker.
  math.randomseed(tonumber(sub(redis.sha1hex(K .. args[1]), 1, 7), 16))
end

local function slot_of(at) return at <= NOW and -1 or floor((at - first) / length) end

local function add(sums, slot, n, n_failed)
  local sum = sums[slot]
  if not sum then
    sum = {0, 0}
    sums[slot] = sum
  end
  sum[1], sum[2] = sum[1] + n, sum[2] + n_failed
end

-- Returns slots with their numbers as a flat list, without those after the last slot.
local function flat(sums)
  local list = {}
  for slot, sum in pairs(sums) do
    if slot < count then
      list[#list + 1] = slot
      list[#list + 1] = sum[1]
      list[#list + 1] = sum[2]
    end
  end
  return list
end

-- Adds entries to `sums` by slot, those of failed jobs apart, except entries for which `fits` is false.
local function tally(sums, entries, fits)
  local locs, slots = {}, {}
  for _, entry in ipairs(entries) do
    if fits(entry) then
      locs[#locs + 1], slots[#slots + 1] = sub(entry, 1, 12), slot_of(read('>I6', entry, 13))
    end
  end
  local found = is_untried and {} or fetch(KEY.states, locs)
  for i, slot in ipairs(slots) do
    local s = state.whole(found[i])
    local n_failed = s and read('>I4', s, 13) > 0 and 1 or 0
    add(sums, slot, 1 - n_failed, n_failed)
  end
end

-- Reads a part of n entries or, if these are more than `most`, a random entry from each of at most `most` equal stretches.
-- `range` returns entries from one position to another. Returns the entries, and whether these are all.
local function read_part(n, most, range)
  if n <= most then
    left = left - n
    return range(0, n - 1), true
  end
  local entries, draws = {}, min(most, max(64, floor(MOST_WORK / n)))
  for i = 0, draws - 1 do
    -- Each entry is as likely as any other, even if n is not a multiple of the number of stretches.
    local at = min(n - 1, floor((i + math.random()) * n / draws))
    entries[i + 1] = range(at, at)[1]
  end
  left = left - draws
  return entries, false
end

-- Counts n entries in the slots `from` to `to`, without the `n_void` ones in the set `void`. Adds them to `counted`, or to
-- `parts` if only a sample was read.
local function count_part(n, most, n_void, void, fits, range, from, to)
  local entries, is_whole = read_part(n, most, range)
  local valid = entries
  if n_void > 0 then
    valid = {}
    for i, is_void in ipairs(call('SMISMEMBER', void, unpack(entries))) do
      if is_void == 0 then valid[#valid + 1] = entries[i] end
    end
  end
  local sums = is_whole and counted or {}
  tally(sums, valid, fits)
  if not is_whole then parts[#parts + 1] = {n - n_void, #valid, from, to, flat(sums)} end
end

local function all() return true end

-- Counts a lane's delayed jobs that are in its sorted set, and returns how many of them are due already. Only a large lane
-- is counted slot by slot; others are read, or sampled, as one part each.
local function count_near(lane)
  local key = due_index.key(lane)
  local total = call('ZCARD', key)
  if total == 0 then return 0 end
  local due = call('ZCOUNT', key, '-inf', NOW)
  local rank, behind = due, (floor(NOW / due_index.WIDTH) + 2) * due_index.WIDTH
  local now, near = slot_of(NOW + 1), min(count, ceil((behind - first) / length))
  local rest = total - due
  local of_lane = is_of_many and max(most, ceil(rest / ONE_OF)) or most
  if rest <= of_lane or (is_of_many and rest < LARGE_LANE) then
    if rest > 0 then
      local function ranks(i, j) return call('ZRANGE', key, due + i, due + j) end
      count_part(rest, of_lane, 0, '', all, ranks, now, near - 1)
    end
    return due
  end
  -- The jobs of a slot are counted exactly; only the share of failed ones comes from a sample, so it may be small.
  local of_slot = min(most, max(LEAST_OF_SLOT, floor(most / max(1, near - now))))
  for slot = now, near - 1 do
    if rank >= total then break end
    local from, to = max(first + slot * length, NOW + 1), first + (slot + 1) * length
    local n = call('ZCOUNT', key, string.format('%.0f', from), string.format('(%.0f', to))
    left = left - 1
    if is_untried then
      add(counted, slot, n, 0)
    elseif n > 0 then
      count_part(n, of_slot, 0, '', all, function(i, j) return call('ZRANGE', key, rank + i, rank + j) end, slot, slot)
    end
    rank = rank + n
  end
  return due
end

-- forecast_near: the jobs of some lanes that are due in the next minutes, by slot, and those that are ready.
-- KEYS  shard
-- ARGV  from where in `index`, to where, how many members to read; the first slot's beginning (ms), the length of a
--   slot (ms), how many there are, up to how many entries of a part are read, 1 if much was read already and else 0
-- Returns {the last member if there may be more, else '', how many are ready, {slot, first attempts, retries, ...},
--   {{size, read, its first slot, its last slot, {slot, first attempts, retries, ...}} of a part that was sampled, ...}}
function scripts.forecast_near(args)
  begin(args, 4)
  is_of_many = args[8] == '1'
  local members = call('ZRANGE', KEY.index, args[1], args[2], 'BYLEX', 'LIMIT', 0, args[3])
  local ids, at, ready, last = {}, {}, 0, #members == tonumber(args[3]) and members[#members] or ''
  for _, member in ipairs(members) do
    local lane = sub(member, #lanes.topic(member) + 2)
    if lane ~= '' then ids[#ids + 1], at[#at + 1] = lane, member end
  end
  shard.load_rows(ids)
  for i, lane in ipairs(ids) do
    if rows[lane] then
      local _, own = read(COUNTS, rows[lane])
      ready = ready + max(0, own) + count_near(lane)
      left = left - 2
    end
    if left <= 0 and i < #ids then
      last = at[i]
      break
    end
  end
  return {last, ready, flat(counted), parts}
end

-- Returns a function that says whether an entry's lane belongs to the tenant and topics asked for, and whether all do.
local function lane_filter(args, base)
  local tenant, topics = args[base], {}
  for i = base + 1, #args do topics[args[i]] = true end
  if tenant == '' and next(topics) == nil then return all, true end
  local known = {}
  return function(entry)
    local lane = sub(entry, 19)
    if known[lane] == nil then
      shard.load_rows({lane})
      local name = lanes.name(lane)
      known[lane] = name ~= nil and (tenant == '' or lanes.tenant(name) == tenant)
        and (next(topics) == nil or topics[lanes.topic(name)] == true)
    end
    return known[lane]
  end, false
end

-- Returns how many outcomes with a lateness each of the five minutes before this one had: {minute, number, ...}
local function delivered()
  local list, now = {}, lateness.minute()
  for minute = now - 5, now - 1 do
    local sum, known = 0, call('HGETALL', lateness.key(minute))
    for i = 1, #known, 2 do
      if known[i] ~= 'max' then sum = sum + tonumber(known[i + 1]) end
    end
    list[#list + 1] = minute
    list[#list + 1] = sum
  end
  return list
end

-- forecast_far: the jobs of some lists of due times that are far off, by slot.
-- KEYS  shard
-- ARGV  the first list to read; the first slot's beginning (ms), the length of a slot (ms), how many there are, up
--   to how many entries of a list are read; `~tenant`, `~` for no tenant or '' for all; topics, none for all
-- Returns {the list to go on with, or '', {slot, first attempts, retries, ...}, parts as those of forecast_near,
--   {minute, deliveries, ...} of the first call}
function scripts.forecast_far(args)
  begin(args, 2)
  local fits, fits_all = lane_filter(args, 6)
  local minutes = args[1] == '-inf' and delivered() or {}
  local width = due_index.WIDTH
  local till = string.format('(%.0f', ceil((first + length * count) / width))
  for _, number in ipairs(call('ZRANGEBYSCORE', KEY.slots, args[1], till, 'LIMIT', 0, 400)) do
    if left <= 0 then return {number, flat(counted), parts, minutes} end
    local list, void, begins = KEY.slot .. number, KEY.cancelled_in_slot .. number, tonumber(number) * width
    local n, n_void = call('LLEN', list), call('SCARD', void)
    local from, to = slot_of(begins), min(count, slot_of(begins + width - 1) + 1) - 1
    left = left - 5
    if is_untried and fits_all and from == to then
      add(counted, from, n - n_void, 0)
    elseif n > n_void then
      count_part(n, most, n_void, void, fits, function(i, j) return call('LRANGE', list, i, j) end, from, to)
    end
    args[1] = '(' .. number
  end
  local rest = call('ZRANGEBYSCORE', KEY.slots, args[1], till, 'LIMIT', 0, 1)
  return {rest[1] or '', flat(counted), parts, minutes}
end
