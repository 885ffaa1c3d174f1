-- page: a page of the jobs that have not ended.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life in which the scan began, how many jobs to look
--   at, how many at a time, 1 when payloads are wanted, byte budget; then of the filter: state or 0, topic or '', `~tenant`,
--   `~` for no tenant or '' for all, host or '', its port or '', tag or '', the first due time and the first behind the last,
--   the same of the time of creation (ms), 1 if only jobs fit that were tried or are dead
-- Returns {life, where to go on ('0' is the end), {how many jobs were looked at, {{locator, state, job state or '', lane
--   name, record}, ...}}}, the record without its payload unless that is wanted; {life} if the scan began in another
--   life. The caller checks what else the filter has

-- Whether an origin is one of a host, as `Destination` of the job model says.
local function is_of_host(origin, host, port)
  local scheme, authority = string.match(origin, '^(https?)://(.*)$')
  if not scheme or sub(authority, 1, #host) ~= host then return false end
  local own = sub(authority, #host + 1)
  if own == '' then
    own = scheme == 'http' and '80' or '443'
  elseif byte(own) == 58 then
    own = sub(own, 2)
  else
    return false
  end
  return port == '' or own == port
end

-- A function that says whether the jobs of a lane fit, by its name.
local function lane_filter(topic, tenant, host, port)
  local known = {}
  return function(name)
    if known[name] == nil then
      known[name] = (topic == '' or lanes.topic(name) == topic) and (tenant == '' or lanes.tenant(name) == tenant)
        and (host == '' or is_of_host(lanes.origin(name), host, port))
    end
    return known[name]
  end
end

local function is_within(at, first, behind) return at >= first and at < behind end

-- A function that says whether a job fits, by the arguments behind the lane's.
local function job_filter(args, base)
  local wanted, tag, only_tried = tonumber(args[7]), args[base], args[base + 5] == '1'
  local due, due_end, created, created_end = tonumber(args[base + 1]), tonumber(args[base + 2]), tonumber(args[base + 3]),
    tonumber(args[base + 4])
  return function(raw, s, code)
    return (wanted == 0 or code == wanted) and (s or not only_tried)
      and (tag == '' or string.find(' ' .. record.tags(raw) .. ' ', ' ' .. tag .. ' ', 1, true) ~= nil)
      and is_within(read('>I6', jobs.due(raw, s)), due, due_end)
      and is_within(read('>I6', jobs.created(raw, s)), created, created_end)
  end
end

function edges.page(args)
  shard.begin(schedule.FIELDS)
  local at, most, step = args[1], tonumber(args[3]), tonumber(args[4])
  local whole, budget, left = args[5] == '1', tonumber(args[6]), most
  local fits_lane, fits = lane_filter(args[8], args[9], args[10], args[11]), job_filter(args, 12)
  local life = server_life()
  if at ~= '0' and args[2] ~= life then return {life} end

  local found = {}
  local function add(loc, raw)
    local name, s = lanes.name(record.lane(raw)), states[loc]
    if not name or not fits_lane(name) then return end
    local code = schedule.code(loc, raw, s)
    if not fits(raw, s, code) then return end
    found[#found + 1] = {loc, code, s or '', name, whole and raw or record.head(raw)}
    -- A payload with a key of its own is read afterwards, and counts here.
    if whole and record.is_external(raw) then budget = budget - read('>I4', raw, #raw - 3) end
  end

  -- A few at a time, so that it ends near the budget: a scan does not return to jobs that it has passed.
  for _ = 1, ceil(left / step) do
    local scanned = call('HSCAN', KEY.pool, at, 'COUNT', step)
    at = scanned[1]
    local locs, names, pairs_found = {}, {}, scanned[2]
    for i = 1, #pairs_found, 2 do
      local loc, raw = pairs_found[i], record.whole(pairs_found[i + 1])
      budget = budget - #pairs_found[i + 1]
      if raw then
        locs[#locs + 1], names[#names + 1] = loc, record.lane(raw)
        records[loc] = raw
      end
    end
    shard.load_rows(names)
    for i, s in ipairs(fetch(KEY.states, locs)) do
      local loc = locs[i]
      states[loc] = state.whole(s)
      if not s or states[loc] then add(loc, records[loc]) end
    end
    left = left - #pairs_found / 2
    if at == '0' or left <= 0 or budget <= 0 then break end
  end
  return {life, at, {most - left, found}}
end
