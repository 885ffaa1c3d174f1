#!lua flags=allow-oom
-- yield: a carrier gives the shard back, if it still holds it. The epoch stays.
-- KEYS  shard
-- ARGV  epoch
-- Returns 1 when it was held
open('epoch')
if fenced(ARGV[1]) then return 0 end
hold(ARGV[1], '')
close()
return 1
