-- The counts of a shard in the consistency check: reads and corrects them.
-- Uses check, lanes, shard, tombs, topics.

-- check_shard: the ledger and the sizes of the indexes, all at one moment.
-- KEYS  shard
-- ARGV  none
-- Returns {{the counts of LEDGER}, {how many lanes have jobs, how many topics have jobs or are paused, how
--   many are paused}, {jobs, dead entries, members of `index`, members of `topics`, uncounted tombstones}, {name of a
--   wrong time of the next look, ...}}

local function values(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = fields[name] end
  return list
end

function scripts.check_shard()
  check.begin()
  local ledger, sums = values(check.LEDGER), values(check.SUMS)
  local sizes, wrong = {call('HLEN', KEY.pool)}, {}
  for i, key in ipairs({KEY.dead, KEY.index, KEY.topics}) do sizes[1 + i] = call('ZCARD', key) end
  sizes[5] = tombs.uncounted()
  for name in pairs(check.wrong_times()) do wrong[#wrong + 1] = name end
  return {ledger, sums, sizes, wrong}
end

-- check_count: corrects counts that were found to be wrong.
-- KEYS  shard
-- ARGV  the counts of LEDGER when the jobs were counted; delayed, ready, reserved, dead as counted, each '' if other
--   counts follow in another call; SUMS as counted, each '' if it is not known; how many lanes follow, and per lane
--   with wrong counts: its id, and its counts (4 bytes each); then per topic: its name, and its number of lanes; per
--   tenant: its name, and its row
-- Returns {1 if the states' counts were corrected, how many lanes, topics and tenants were}; {} if something
--   has moved since the jobs were counted
local STATES = {'delayed', 'ready', 'reserved', 'dead'}
-- How many arguments are before those of the states, the sums, and the lanes.
local OF_STATES = #check.LEDGER
local OF_SUMS, OF_LANES = OF_STATES + 4, OF_STATES + 8

local function correct_lanes(args, n)
  local ids, gone, corrected = {}, {}, 0
  for i = 1, n do ids[i] = args[OF_LANES + 2 * i - 1] end
  shard.load_rows(ids)
  for i, lane in ipairs(ids) do
    local counts, name = args[OF_LANES + 2 * i], lanes.name(lane)
    if name and counts ~= sub(NO_COUNTS, 1, 16) then
      shard.put(lane, counts .. sub(rows[lane], 17))
    elseif name then
      gone[#gone + 1] = lane
    end
    corrected = corrected + (name and 1 or 0)
  end
  topics.drop_rows(gone, 0)
  return corrected
end

-- Only the name of a tenant begins with ~ and has no slash.
local function is_tenant(name) return byte(name) == 126 and not string.find(name, '/', 1, true) end

local function correct_topics(args, from)
  local names = {}
  for i = from, #args, 2 do names[#names + 1] = topics.field(args[i]) end
  shard.load_rows(names)
  for i = from, #args, 2 do
    if is_tenant(args[i]) then
      topics.set_tenant(args[i], args[i + 1])
    else
      topics.set_lanes(args[i], tonumber(args[i + 1]))
    end
  end
  return #names
end

-- Sets the counts of the states. Accepted jobs that are in no state count as done as far as there are tombstones that
-- were not counted, and else as missing. If there are more jobs than were accepted, none is missing, and all count as
-- accepted.
local function correct_states(args)
  local sum = fields.done + fields.cancelled + fields.purged
  for i, name in ipairs(STATES) do
    local n = tonumber(args[OF_STATES + i])
    sum = sum + n
    shard.set(name, n)
  end
  local ended = min(max(fields.accepted - sum - fields.missing, 0), tombs.uncounted())
  if ended > 0 then
    shard.set('done', fields.done + ended)
    tombs.count_more(ended)
    sum = sum + ended
  end
  local missing = max(fields.accepted - sum, 0)
  if sum > fields.accepted then shard.set('accepted', sum) end
  if missing ~= fields.missing then shard.set('missing', missing) end
end

function scripts.check_count(args)
  shard.begin()
  for i, name in ipairs(check.LEDGER) do
    if string.format('%.0f', fields[name]) ~= args[i] then return {} end
  end
  local n_lanes = tonumber(args[OF_LANES])
  local corrected = correct_lanes(args, n_lanes) + correct_topics(args, OF_LANES + 2 * n_lanes + 1)
  for i, name in ipairs(check.SUMS) do
    local n = tonumber(args[OF_SUMS + i])
    if n then shard.set(name, n) end
  end

  local is_last = args[OF_STATES + 1] ~= ''
  if is_last then correct_states(args) end
  shard.close()
  return {is_last and 1 or 0, corrected}
end
