-- What the shard knows of itself, in one hash: the ledger (how many jobs are in each state,
-- and how many ever were accepted or purged), how many lanes and topics have jobs, the
-- carrier's epoch, when it will look again, the last lease number, the tombstones' segment,
-- the earliest slot, when the first lease runs out and the first job died. An edge reads the
-- fields it needs with one call, before all else, and writes those that changed with one, last.
--
-- The same hash has rows. One for each lane that has jobs, under its id: how many are delayed,
-- ready, reserved and dead (4 bytes each), how many of it were done and cancelled (6 bytes each), and
-- the lane in words, topic and origin. And those of the topics, see there.
local STATE_NAMES = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}
local COUNTS, NO_COUNTS = '>i4i4i4i4I6I6', string.rep('\0', 28)
local shard, changes, tally, soonest
local rows, lane_counts
local topics, events = {}, {}

local function begin(fields, names)
  if not NOW_US then tick() end
  shard, changes, tally, soonest = {}, {}, {}, nil
  rows, lane_counts = {}, {}
  local wanted, n = fields, #fields
  if names and #names > 0 and #names + n <= 4000 then
    wanted = {unpack(fields)}
    for i, name in ipairs(names) do wanted[n + i] = name end
  end
  local values = call('HMGET', KEY.shard, events.FIELD, unpack(wanted))
  for i = 1, n do shard[fields[i]] = tonumber(values[i + 1] or 0) end
  for i = n + 1, #wanted do rows[wanted[i]] = values[i + 1] end
  shard.watched = tonumber(values[1] or 0)
  events.begin(shard.watched)
end

local function set(name, value)
  shard[name] = value
  local n = #changes
  changes[n + 1], changes[n + 2] = name, value
end

local function count(name, n) tally[name] = (tally[name] or 0) + n end

-- n jobs of a lane go from a state to another; nil where they come from, or go to, nowhere.
local function move(lane, from, to, n)
  local counts = lane_counts[lane]
  if not counts then
    counts = {0, 0, 0, 0, 0, 0}
    lane_counts[lane] = counts
  end
  if from then
    count(STATE_NAMES[from], -n)
    counts[from] = counts[from] - n
  end
  if to then
    count(STATE_NAMES[to], n)
    counts[to] = counts[to] + n
  end
end

-- `next` is when the shard's carrier will look again. A moment before it lowers it.
local function moment(at) if not soonest or at < soonest then soonest = at end end

-- The earliest of something: a field of the shard, 0 for none.
local function earliest(name, at)
  if shard[name] == 0 or at < shard[name] then set(name, at) end
end

local function rows_load(names)
  local absent = {}
  for _, name in ipairs(names) do if rows[name] == nil then absent[#absent + 1] = name end end
  for i, row in ipairs(fetch(KEY.shard, absent)) do rows[absent[i]] = row end
end
local function lane_words(lane)
  local row = rows[lane]
  if row then return sub(row, 29) end
end
local function topic_in(words) return string.match(words, '^[^ ]*') end

-- A lane that jobs go from is forgotten with its last. One that is counted wrong may seem to have
-- none where jobs only move within it: that is kept, for edges that end none have not read what
-- forgetting it takes.
local function save_lanes()
  if next(lane_counts) == nil then return end
  local lanes, gone = {}, {}
  for lane in pairs(lane_counts) do lanes[#lanes + 1] = lane end
  rows_load(lanes)
  for lane, more in pairs(lane_counts) do
    local row = rows[lane]
    if row then
      local delayed, ready, reserved, dead, done, cancelled = read(COUNTS, row)
      delayed, ready = delayed + more[DELAYED], ready + more[READY]
      reserved, dead = reserved + more[RESERVED], dead + more[DEAD]
      local changed = pack(COUNTS, delayed, ready, reserved, dead, done + more[DONE], cancelled + more[CANCELLED])
        .. sub(row, 29)
      rows[lane] = changed
      local own = more[DELAYED] + more[READY] + more[RESERVED] + more[DEAD]
      if own < 0 and delayed + ready + reserved + dead <= 0 then
        gone[#gone + 1] = lane
      elseif changed ~= row then
        set(lane, changed)
      end
    end
  end
  if #gone > 0 then topics.forget_lanes(gone) end
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
  events.close()
end
