#!lua flags=allow-oom
-- reserve: ready -> reserved. Lanes take turns; those full for the caller are passed.
-- KEYS  shard
-- ARGV  caller, sequence, limit (jobs), lane room, receipt bits (8 bytes), lease margin (ms),
--   default timeout (ms), longest stretch (ms), byte budget, then lane, room of lanes with less
-- Returns {now in us, 1 when more can be taken, 1 when full lanes were passed, loc, record, ...}
local caller, seq, left = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local rand, margin, default, stretch = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local budget = tonumber(ARGV[9])

local again = replayed(caller, seq)
if again then
  local answer = {NOW_US, 1, 0}
  for _, loc in ipairs(again.locs) do
    local j = get(loc)
    if j and j.st == RESERVED and j.rand == again.rand then
      answer[#answer + 1], answer[#answer + 2] = loc, bytes(j)
    end
  end
  return answer
end

local rooms = {}
for i = 10, #ARGV, 2 do rooms[ARGV[i]] = tonumber(ARGV[i + 1]) end
local lanes = call('ZRANGE', K .. ':lanes', 0, 63 + (#ARGV - 9) / 2)
local open = 0
for _, lane in ipairs(lanes) do if rooms[lane] ~= 0 then open = open + 1 end end
local share = math.ceil(left / math.max(open, 1))

-- Look first, and take nothing away yet.
local taken, visits, passed, more = {}, {}, 0, 0
for _, lane in ipairs(lanes) do
  local room = math.min(rooms[lane] or tonumber(ARGV[4]), share, left)
  if rooms[lane] == 0 then
    passed = 1
  elseif room == 0 or budget <= 0 then
    more = 1
    break
  else
    local length = call('LLEN', queue(lane))
    local entries = call('LRANGE', queue(lane), 0, room - 1)
    local n = 0
    while n < #entries and budget > 0 do
      n = n + 1
      local loc = sub(entries[n], 1, 12)
      local j = get(loc)
      if ready_match(entries[n], j) then
        taken[#taken + 1] = {loc, j}
        budget = budget - #j.tail
        left = left - 1
      end
    end
    if n < length then
      if (rooms[lane] or tonumber(ARGV[4])) > n then more = 1 else passed = 1 end
    end
    visits[#visits + 1] = {lane, n, length}
  end
end

if #lanes >= 64 + (#ARGV - 9) / 2 then more = 1 end

local lease = math.max(counter('lease') + 1, NOW_US)
local leases, locs = {}, {}
for i, t in ipairs(taken) do
  local j = t[2]
  local wait = timeout(j)
  if wait == 0 then wait = default end
  j.lease, j.rand, j.st = lease + i - 1, rand, RESERVED
  j.attempts = j.attempts + 1
  j.deadline = NOW_UP + math.min(wait, stretch) + margin
  set(j, HAS_RUN)
  leases[2 * i - 1], leases[2 * i] = j.deadline, t[1]
  locs[i] = t[1]
  moment(j.deadline)
  move(READY, RESERVED)
end
lease_add(leases)
local answer = {NOW_US, more, passed}
for _, t in ipairs(taken) do
  answer[#answer + 1], answer[#answer + 2] = t[1], put(t[1], t[2])
end
for i, v in ipairs(visits) do
  if v[2] == v[3] then
    call('ZREM', K .. ':lanes', v[1])
  else
    call('ZADD', K .. ':lanes', 'XX', NOW_US + i, v[1])
  end
  if v[2] > 0 then call('LTRIM', queue(v[1]), v[2], -1) end
end
if #taken > 0 then
  call('HSET', K .. ':counters', 'lease', lease + #taken - 1)
  remember(caller, seq, rand, locs)
end
write_tally()
write_moment()
return answer
