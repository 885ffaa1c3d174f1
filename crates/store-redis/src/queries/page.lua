-- Pages of jobs that match a filter (page), and how many jobs an index has for a filter (indexed).
-- page: a page of the jobs that have not ended, by an index if one serves the filter, else by a scan of all.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's run in which the scan began, how many jobs to look
--   at, how many at a time, 1 when payloads are wanted, byte budget; then of the filter: state or 0, topic or '', `~tenant`,
--   `~` for no tenant or '' for all, host or '', its port or '', tag or '', the first due time and the first behind the last,
--   the same of the time of creation (ms), 1 if only jobs fit that were tried or are dead
-- Returns {run, where to go on ('0' is the end), {how many jobs were read, {{locator, state, job state or '', lane
--   name, record}, ...}}}, the record without its payload unless that is wanted; {run} if the scan began in another
--   run. The caller checks what else the filter has
-- Uses dead_letters, due_index, lanes, records, shard, tag_index.

-- No time is as late as this (ms).
local MAX_TIME = 2 ^ 48

local function is_of_host(name, host, port)
  local own_host, own_port = lanes.destination(name)
  return own_host == host and (port == '' or own_port == port)
end

-- Makes a function that says whether the jobs of a lane match, by its name.
local function lane_filter(topic, tenant, host, port)
  local known = {}
  return function(name)
    if known[name] == nil then
      known[name] = (topic == '' or lanes.topic(name) == topic) and (tenant == '' or lanes.tenant(name) == tenant)
        and (host == '' or is_of_host(name, host, port))
    end
    return known[name]
  end
end

-- Makes a function that says whether a time (6 bytes) is in a range (ms); returns nil if each time is.
local function time_filter(first, behind)
  if first == 0 and behind == MAX_TIME then return nil end
  return function(six)
    local at = read('>I6', six)
    return at >= first and at < behind
  end
end

-- Makes a function that says whether a job matches tag, times and attempts, which `args` have from `base` on.
local function job_filter(args, base)
  local tag, only_tried = args[base], args[base + 5] == '1'
  local is_due = time_filter(tonumber(args[base + 1]), tonumber(args[base + 2]))
  local is_created = time_filter(tonumber(args[base + 3]), tonumber(args[base + 4]))
  return function(raw, s)
    return (s or not only_tried)
      and (tag == '' or string.find(' ' .. record.tags(raw) .. ' ', ' ' .. tag .. ' ', 1, true) ~= nil)
      and (not is_due or is_due(jobs.due(raw, s)))
      and (not is_created or is_created(jobs.created(raw, s)))
  end
end

-- Chooses the index that serves a filter: 'tags', if it has a tag and a tenant or no tenant; 'dead'; nil for none.
local function index_of(wanted, tenant, tag)
  if tag ~= '' and tenant ~= '' then return 'tags' end
  return wanted == DEAD and 'dead' or nil
end

-- Reads jobs by an index. Returns where to go on, and jobs as HSCAN does, with false as the record of one that has ended.
local function indexed(index, tenant, tag, at, count)
  local locs, next_at
  if index == 'tags' then
    locs, next_at = tag_index.page(tenant, tag, at, count)
  else
    locs, next_at = dead_letters.page(at, count)
  end
  local found, raws = {}, fetch(KEY.pool, locs)
  for i, loc in ipairs(locs) do found[2 * i - 1], found[2 * i] = loc, raws[i] end
  return next_at, found
end

-- The run of a page of an index, which can be read on in any run.
local ANY_RUN = '00000000'

function scripts.page(args)
  shard.begin()
  local at, most, step = args[1], tonumber(args[3]), tonumber(args[4])
  local whole, budget, left = args[5] == '1', tonumber(args[6]), most
  local wanted, fits = tonumber(args[7]), job_filter(args, 12)
  local fits_lane = lane_filter(args[8], args[9], args[10], args[11])
  local tenant, tag = args[9], args[12]
  local index = index_of(wanted, tenant, tag)
  local run = index and ANY_RUN or server_run()
  if at ~= '0' and args[2] ~= run then return {run} end

  local found = {}
  local function add(loc, raw)
    local name, s = lanes.name(record.lane(raw)), states[loc]
    if not name or not fits_lane(name) or not fits(raw, s) then return end
    -- The state comes last, because finding it may read the due index.
    local code = due_index.code(loc, raw, s)
    if wanted ~= 0 and code ~= wanted then return end
    found[#found + 1] = {loc, code, s or '', name, whole and raw or record.head(raw)}
    -- A payload with a key of its own is read afterwards, and a compressed body decompressed; both count here.
    if whole then budget = budget + #raw - record.weight(raw) end
  end

  -- A few jobs at a time, so that the page ends near the budget: a scan cannot go back.
  for _ = 1, ceil(left / step) do
    local pairs_found
    if index then
      at, pairs_found = indexed(index, tenant, tag, at, min(step, left))
    else
      at, pairs_found = unpack(call('HSCAN', KEY.pool, at, 'COUNT', step))
    end
    local locs, names = {}, {}
    for i = 1, #pairs_found, 2 do
      local loc, raw = pairs_found[i], record.whole(pairs_found[i + 1])
      budget = budget - (pairs_found[i + 1] and #pairs_found[i + 1] or 0)
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
  return {run, at, {most - left, found}}
end

-- indexed: how many jobs the pages of a filter read in all, for a filter that an index serves.
-- KEYS  shard
-- ARGV  of the filter: state or 0, `~tenant`, `~` for no tenant or '' for all, tag or ''
-- Returns how many
function scripts.indexed(args)
  if index_of(tonumber(args[1]), args[2], args[3]) == 'tags' then return tag_index.count(args[2], args[3]) end
  return call('ZCARD', KEY.dead)
end
