#!lua flags=allow-oom
-- reserve: ready -> reserved. Lanes take turns; those full for the caller are passed.
-- KEYS  shard
-- ARGV  caller, sequence, limit (jobs), lane room, receipt bits (8 bytes), lease margin (ms),
--   default timeout (ms), longest stretch (ms), byte budget, then lane, room of lanes with less
-- Returns {now in us, 1 when more can be taken, {lanes that have more than their room}, loc, record, ...}
local caller, seq, left, others = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local bits, margin, default, stretch = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local budget = tonumber(ARGV[9])

local given, given_bits = replayed(caller, seq)
if given then
  local answer = {NOW_US, 1, {}}
  load(given)
  for _, loc in ipairs(given) do
    local j = get(loc)
    if j and j.st == RESERVED and run(j).bits == given_bits then
      answer[#answer + 1], answer[#answer + 2] = loc, j.raw
    end
  end
  return answer
end

local rooms = {}
for i = 10, #ARGV, 2 do rooms[ARGV[i]] = tonumber(ARGV[i + 1]) end
local window = 64 + (#ARGV - 9) / 2
local lanes = ready_lanes(window)
local open = 0
for _, lane in ipairs(lanes) do if rooms[lane] ~= 0 then open = open + 1 end end
local share = math.ceil(left / math.max(open, 1))

-- Look first, and take nothing away yet.
local taken, visits, passed, more = {}, {}, {}, #lanes == window and 1 or 0
for _, lane in ipairs(lanes) do
  local bound = rooms[lane] or others
  local room = math.min(bound, share, left)
  if bound == 0 then
    passed[#passed + 1] = lane
  elseif room == 0 or budget <= 0 then
    more = 1
    break
  else
    local entries, length = ready_first(lane, room)
    local locs, n = {}, 0
    for i, entry in ipairs(entries) do locs[i] = ready_loc(entry) end
    load(locs)
    while n < #entries and budget > 0 do
      n = n + 1
      local j = get(locs[n])
      if ready_match(entries[n], j) then
        taken[#taken + 1] = {locs[n], j}
        budget = budget - #j.raw
        left = left - 1
        -- An entry that stands twice is taken once.
        j.st = RESERVED
      end
    end
    if n < length then
      if bound > n then more = 1 else passed[#passed + 1] = lane end
    end
    visits[#visits + 1] = {lane, n, length}
  end
end

local number = lease_number()
local leases, locs, answer = {}, {}, {NOW_US, more, passed}
for i, t in ipairs(taken) do
  local loc, j = t[1], t[2]
  local wait, r = timeout(j), run(j)
  if wait == 0 then wait = default end
  r.lease, r.bits, r.attempts = number + i - 1, bits, r.attempts + 1
  r.deadline = NOW_UP + math.min(wait, stretch) + margin
  leases[2 * i - 1], leases[2 * i], locs[i] = r.deadline, loc, loc
  moment(r.deadline)
  move(READY, RESERVED)
  put(loc, j)
  answer[#answer + 1], answer[#answer + 2] = loc, j.raw
end
lease_add(leases)
save()
for i, v in ipairs(visits) do ready_pop(v[1], v[2], v[3], i) end
if #taken > 0 then
  lease_numbered(number + #taken - 1)
  remember(caller, seq, bits, locs)
end
write_tally()
write_moment()
return answer
