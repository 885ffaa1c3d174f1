#!lua flags=allow-oom
-- renew: reserved -> reserved with a later deadline.
-- KEYS  shard
-- ARGV  locator, receipt (number and bits, 16 bytes), length (ms)
-- Returns the new deadline (ms), or -1 when the receipt is not current
open('next')
local loc = ARGV[1]
load_heads({loc})
local h = heads[loc]
if not (h and state(h) == RESERVED and receipt(h) == ARGV[2]) then return -1 end
local ends = math.max(deadline(h), NOW_UP + tonumber(ARGV[3]))
lease_add({ends, loc})
put(loc, with_deadline(h, ends))
save()
moment(ends)
close()
return ends
