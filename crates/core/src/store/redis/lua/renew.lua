#!lua flags=allow-oom
-- renew: reserved -> reserved with a later deadline.
-- KEYS  shard
-- ARGV  locator, lease number, receipt bits, length (ms)
-- Returns the new deadline (ms), or -1 when the receipt is not current
local loc = ARGV[1]
local j = get(loc)
if not (j and j.st == RESERVED) then return -1 end
local r = run(j)
if r.lease ~= tonumber(ARGV[2]) or r.bits ~= ARGV[3] then return -1 end
r.deadline = math.max(r.deadline, NOW_UP + tonumber(ARGV[4]))
lease_add({r.deadline, loc})
put(loc, j)
save()
moment(r.deadline)
write_moment()
return r.deadline
