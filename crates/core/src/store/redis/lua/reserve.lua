#!lua flags=allow-oom
-- reserve: ready -> reserved. Lanes take turns; those full for the caller are passed.
-- KEYS  shard
-- ARGV  caller, sequence, limit (jobs), lane room, receipt bits (8 bytes), lease margin (ms),
--   default timeout (ms), longest stretch (ms), byte budget, then lane, room of lanes with less
-- Returns {now in us, 1 when more can be taken, {lanes that have more than their room},
--   locator, head, record, ...}
open('next', 'ready', 'reserved', 'lease')
local caller, seq, left, others = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local bits, margin, default, stretch = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local budget = tonumber(ARGV[9])
local answer = {NOW_US, 1, {}}
local function give(loc)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = loc, heads[loc], records[loc]
end

local given, given_bits = replayed(caller, seq)
if given then
  load(given)
  for _, loc in ipairs(given) do
    local h = heads[loc]
    if h and state(h) == RESERVED and sub(receipt(h), 9) == given_bits then give(loc) end
  end
  return answer
end

-- The number of a lease only grows, past a fail-over that has lost the last numbers too.
local number = math.max(shard.lease, NOW_US - 1)
local leases, locs = {}, {}
local function lease(loc, h)
  local wait = timeout(h)
  local ends = NOW_UP + math.min(wait == 0 and default or wait, stretch) + margin
  number = number + 1
  put(loc, with_lease(h, pack('>I8c8I6', number, bits, ends)))
  locs[#locs + 1] = loc
  leases[#leases + 1], leases[#leases + 2] = score(ends), loc
  moment(ends)
  give(loc)
end

local rooms = {}
for i = 10, #ARGV, 2 do rooms[ARGV[i]] = tonumber(ARGV[i + 1]) end
local window = 64 + (#ARGV - 9) / 2
local lanes = ready_lanes(window)
local open_lanes = 0
for _, lane in ipairs(lanes) do if rooms[lane] ~= 0 then open_lanes = open_lanes + 1 end end
local share = math.ceil(left / math.max(open_lanes, 1))

-- Look first, and take nothing away yet.
local visits, passed, more = {}, {}, #lanes == window and 1 or 0
for _, lane in ipairs(lanes) do
  local bound = rooms[lane] or others
  local room = math.min(bound, share, left)
  if bound == 0 then
    passed[#passed + 1] = lane
  elseif room == 0 or budget <= 0 then
    more = 1
    break
  else
    local entries, next_locs, n = ready_first(lane, room), {}, 0
    for i = 1, math.min(#entries, room) do next_locs[i] = ready_loc(entries[i]) end
    load(next_locs)
    while n < #next_locs and budget > 0 do
      n = n + 1
      local loc = next_locs[n]
      -- An entry that stands twice is taken once: its job is reserved by then.
      if ready_match(entries[n], heads[loc]) then
        lease(loc, heads[loc])
        budget = budget - weight(loc)
        left = left - 1
      end
    end
    if n < #entries then
      if bound > n then more = 1 else passed[#passed + 1] = lane end
    end
    visits[#visits + 1] = {lane, n, n == #entries}
  end
end

lease_add(leases)
save()
for i, v in ipairs(visits) do ready_pop(v[1], v[2], v[3], i) end
if #locs > 0 then
  set('lease', number)
  remember(caller, seq, bits, locs)
  move(READY, RESERVED, #locs)
end
close()
answer[2], answer[3] = more, passed
return answer
