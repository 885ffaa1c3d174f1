#!lua flags=allow-oom
-- renew: reserved -> reserved with a later deadline.
-- KEYS  shard
-- ARGV  locator, lease number, receipt bits, length (ms)
-- Returns the new deadline (ms), or -1 when the receipt is not current
local loc = ARGV[1]
local j = get(loc)
if not (j and j.st == RESERVED and j.lease == tonumber(ARGV[2]) and j.rand == ARGV[3]) then return -1 end
j.deadline = math.max(j.deadline, NOW_UP + tonumber(ARGV[4]))
lease_add({j.deadline, loc})
put(loc, j)
moment(j.deadline)
write_moment()
return j.deadline
