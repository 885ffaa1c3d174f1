-- Limits of destinations and topics: what they allow, how much of it is used, and which callbacks may begin.
--
-- `limits` is a hash: the name of each limit (prelude/destinations.lua), and its row of doubles:
-- count and seconds of the rate, burst, callbacks in flight, interval between callbacks (us), 0 for what is not limited;
-- then when its bucket is full (us), and the number after the last place under it. `places:<limit>` is a sorted set of
-- the places under a limit of callbacks in flight, by when they lapse (ms). `place` is the number of the last place:
-- numbers are times, so they only grow, even after a failover that has lost the last ones.
-- Uses destinations.
local ROW = '<ddddddd'
local function rows_key() return K .. ':limits' end
local function places_key(name) return K .. ':places:' .. name end

local function row_of(name, packed)
  local count, seconds, burst, most, interval, full_at, after = read(ROW, packed)
  return {
    name = name, count = count, seconds = seconds, burst = burst, most = most, interval = interval, full_at = full_at,
    after = after,
  }
end
local function packed_row(row)
  return pack(ROW, row.count, row.seconds, row.burst, row.most, row.interval, row.full_at, row.after)
end

-- put_limit: stores a limit, or removes it.
-- KEYS  installation
-- ARGV  name, the first five numbers of its row or '' to remove it, what the names of its tenant's limits begin with or
--   '', how many limits there may be in all, how many of a tenant
-- Returns 1; 0 if it would be one limit too many, 2 if one too many of its tenant, or -1 if there was none to remove
function scripts.put_limit(args)
  tick()
  local name = args[1]
  local before = call('HGET', rows_key(), name)
  if args[2] == '' then
    call('HDEL', rows_key(), name)
    call('UNLINK', places_key(name))
    return before and 1 or -1
  end
  local too_many = not before and destinations.limit(rows_key(), args[3], tonumber(args[4]), tonumber(args[5]))
  if too_many then return too_many end
  local row = row_of(name, args[2] .. string.rep('\0', 16))
  if before then
    local old = row_of(name, before)
    row.full_at, row.after = min(old.full_at, NOW_US + row.interval), old.after
  end
  -- A breaker allows the first callback after an interval.
  if sub(name, 1, 1) == '^' then row.full_at = NOW_US + row.interval end
  call('HSET', rows_key(), name, packed_row(row))
  return 1
end

-- limit_names: the names of all limits.
-- KEYS  installation
-- ARGV  none
-- Returns {name, ...}
function scripts.limit_names() return call('HKEYS', rows_key()) end

-- limits: limits by their names, and how much of them is used.
-- KEYS  installation
-- ARGV  name, ...
-- Returns {{row, how many callbacks are in flight}, ...}, {} for a name without a limit; and now (us) at the end
function scripts.limits(args)
  tick()
  local answer = {}
  for i, packed in ipairs(fetch(rows_key(), args)) do
    answer[i] = packed and {packed, call('ZCOUNT', places_key(args[i]), '(' .. whole(NOW), '+inf')} or NONE
  end
  answer[#answer + 1] = NOW_US
  return answer
end

-- admit: gives places to callbacks that may begin under all limits of their lane, and takes places back.
-- KEYS  installation
-- ARGV  six numbers as doubles: how long a place lasts (ms), how much later a callback may begin (us), and how much later it
--   does at least if it needs a token (us), how many places have ended, how many runs of places were not used, how many places are held longer; then lane name and place (8 bytes) of
--   those that ended, lane name, first place and number (8 and 4 bytes) of the unused ones, lane name, place and time to
--   come (8 bytes, and 6 bytes of ms) of those that are held; then lane name and number of places that are wanted
-- Returns for each wanted lane {0} without a limit, {1, us until a caller is to ask again or -1 if all places are in use}, or
--   {2, first place, us until each may begin, ...}
function scripts.admit(args)
  tick()
  local lasts, ahead, lead, n_ended, n_unused, n_held = read('<dddddd', args[1])
  local names, asked = {}, {}
  for i = 2, #args, 2 do
    for _, name in ipairs(destinations.names(args[i])) do
      if not asked[name] then
        asked[name] = true
        names[#names + 1] = name
      end
    end
  end
  local limits = {}
  for i, packed in ipairs(fetch(rows_key(), names)) do
    if packed then limits[names[i]] = row_of(names[i], packed) end
  end
  local function limits_of(lane)
    local found = {}
    for _, name in ipairs(destinations.names(lane)) do found[#found + 1] = limits[name] end
    return found
  end

  local at, left, held = 2, {}, {}
  for _ = 1, n_ended do
    for _, limit in ipairs(limits_of(args[at])) do if limit.most > 0 then append(left, limit.name, args[at + 1]) end end
    at = at + 2
  end
  for _ = 1, n_unused do
    local first, n = read('>I8I4', args[at + 1])
    for _, limit in ipairs(limits_of(args[at])) do
      if limit.most > 0 then
        for place = first, first + n - 1 do append(left, limit.name, pack('>I8', place)) end
      end
      if limit.after == first + n then
        limit.full_at, limit.after, limit.is_changed = limit.full_at - n * limit.interval, first, true
      end
    end
    at = at + 2
  end
  for _ = 1, n_held do
    local place, time = sub(args[at + 1], 1, 8), read('>I6', args[at + 1], 9)
    for _, limit in ipairs(limits_of(args[at])) do
      if limit.most > 0 then append_all(held, limit.name, {whole(NOW_UP + time), place}) end
    end
    at = at + 2
  end
  for name, places in pairs(left) do sliced('ZREM', places_key(name), places) end
  for name, places in pairs(held) do sliced('ZADD', places_key(name), {'XX', unpack(places)}) end

  -- How many places of a limit are free.
  local function free(limit)
    if limit.most == 0 then return math.huge end
    if not limit.free then
      call('ZREMRANGEBYSCORE', places_key(limit.name), '-inf', whole(NOW))
      limit.free = limit.most - call('ZCARD', places_key(limit.name))
    end
    return limit.free
  end
  local answer, taken, first = {}, {}, nil
  for i = at, #args, 2 do
    local found, wanted, begins = limits_of(args[i]), tonumber(args[i + 1]), {}
    for _, limit in ipairs(found) do wanted = min(wanted, free(limit)) end
    local begin = NOW_US
    for _, limit in ipairs(found) do if limit.count > 0 then begin = NOW_US + lead end end
    while #begins < wanted do
      for _, limit in ipairs(found) do begin = max(begin, limit.full_at - (max(limit.burst, 1) - 1) * limit.interval) end
      if begin > NOW_US + ahead then break end
      for _, limit in ipairs(found) do
        if limit.count > 0 then limit.full_at = max(limit.full_at, begin) + limit.interval end
      end
      begins[#begins + 1] = max(0, ceil(begin - NOW_US))
    end
    local n = #begins
    if #found == 0 then
      answer[#answer + 1] = {0}
    elseif n == 0 then
      -- Asked when half of `ahead` is free, a limit gives several places at a time.
      answer[#answer + 1] = {1, wanted < 1 and -1 or ceil(begin - NOW_US - ahead / 2)}
    else
      first = first or max(NOW_US, tonumber(call('GET', K .. ':place') or 0) + 1)
      for _, limit in ipairs(found) do
        if limit.most > 0 then
          limit.free = limit.free - n
          local places = {}
          for j = 0, n - 1 do places[2 * j + 1], places[2 * j + 2] = whole(NOW_UP + lasts), pack('>I8', first + j) end
          append_all(taken, limit.name, places)
        end
        limit.after, limit.is_changed = first + n, true
      end
      answer[#answer + 1] = {2, first, unpack(begins)}
      first = first + n
    end
  end
  for name, places in pairs(taken) do sliced('ZADD', places_key(name), places) end
  local changed = {}
  for name, limit in pairs(limits) do
    if limit.is_changed then changed[#changed + 1], changed[#changed + 2] = name, packed_row(limit) end
  end
  sliced('HSET', rows_key(), changed)
  if first then call('SET', K .. ':place', whole(first - 1)) end
  return answer
end
