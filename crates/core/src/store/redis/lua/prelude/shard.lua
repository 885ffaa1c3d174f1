-- What the shard knows of itself, in one hash: the ledger (how many jobs are in each state,
-- and how many ever were accepted or purged), the carrier's epoch, when it will look again,
-- the last lease number, the tombstones' segment, the earliest slot, when the first lease
-- runs out and the first job died. An edge reads the fields it needs with one call, before
-- all else, and writes those that changed with one, last.
--
-- The same hash has the lanes that have jobs, under their ids: how many (6 bytes), the hour
-- of the last submit (4 bytes), and the lane in words, topic and origin.
local STATE_NAMES = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}
local shard, changes, tally, soonest
local lane_rows, lane_counts

local function begin(fields, lanes)
  tick()
  shard, changes, tally, soonest = {}, {}, {}, nil
  lane_rows, lane_counts = {}, {}
  local wanted, n = fields, #fields
  if lanes and #lanes > 0 and #lanes + n <= 4000 then
    wanted = {unpack(fields)}
    for i, lane in ipairs(lanes) do wanted[n + i] = lane end
  end
  local values = call('HMGET', KEY.shard, unpack(wanted))
  for i = 1, n do shard[fields[i]] = tonumber(values[i] or 0) end
  for i = n + 1, #wanted do lane_rows[wanted[i]] = values[i] end
end

local function set(name, value)
  shard[name] = value
  local n = #changes
  changes[n + 1], changes[n + 2] = name, value
end

local function count(name, n) tally[name] = (tally[name] or 0) + n end
local function move(from, to, n)
  count(STATE_NAMES[from], -n)
  count(STATE_NAMES[to], n)
end

-- `next` is when the shard's carrier will look again. A moment before it lowers it.
local function moment(at) if not soonest or at < soonest then soonest = at end end

-- The earliest of something: a field of the shard, 0 for none.
local function earliest(name, at)
  if shard[name] == 0 or at < shard[name] then set(name, at) end
end

local function lanes_load(lanes)
  local absent = {}
  for _, lane in ipairs(lanes) do if lane_rows[lane] == nil then absent[#absent + 1] = lane end end
  for i, row in ipairs(fetch(KEY.shard, absent)) do lane_rows[absent[i]] = row end
end
local function lane_words(lane)
  local row = lane_rows[lane]
  if row then return sub(row, 11) end
end
local function topic_in(words) return string.match(words, '^[^ ]*') end

-- So many jobs more, or fewer, that have not ended.
local function lane_count(lane, n) lane_counts[lane] = (lane_counts[lane] or 0) + n end

-- A lane without jobs is forgotten.
local function save_lanes()
  if next(lane_counts) == nil then return end
  local lanes, gone = {}, {}
  for lane in pairs(lane_counts) do lanes[#lanes + 1] = lane end
  lanes_load(lanes)
  for lane, n in pairs(lane_counts) do
    local row = lane_rows[lane]
    local left = row and read('>I6', row) + n or 0
    if left > 0 then set(lane, six(left) .. sub(row, 7)) elseif row then gone[#gone + 1] = lane end
  end
  sliced('HDEL', KEY.shard, gone)
end

local function close()
  save_lanes()
  for name, n in pairs(tally) do
    if n ~= 0 then set(name, shard[name] + n) end
  end
  if soonest and (shard.next == 0 or soonest < shard.next) then
    set('next', soonest)
    tell(string.format('due %s %.0f', KEY.tag, max(0, soonest * 1000 - NOW_US)))
  end
  sliced('HSET', KEY.shard, changes)
end
