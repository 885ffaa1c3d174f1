#!lua flags=no-writes
-- get: what is known of one job. No edge; changes nothing.
-- KEYS  shard
-- ARGV  locator
-- Returns {record} | {false, tombstone} | {}
local j = get(ARGV[1])
if j then return {j.raw} end
local tomb = tomb_get(ARGV[1])
return tomb and {false, tomb.raw} or {}
