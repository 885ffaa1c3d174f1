#!lua flags=no-writes
-- get: what is known of one job. No edge; changes nothing.
-- KEYS  shard
-- ARGV  locator
-- Returns {head} | {false, tombstone} | {}
open('segment')
load({ARGV[1]})
local h = heads[ARGV[1]]
if h then return {h} end
local tomb = tomb_get(ARGV[1])
return tomb and {false, tomb} or {}
