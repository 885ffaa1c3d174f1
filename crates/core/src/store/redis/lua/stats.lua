#!lua flags=no-writes
-- stats: the ledger, the topics and the lateness of the last five minutes. No edge.
-- KEYS  shard
-- ARGV  none
-- Returns {ledger, topics, {lateness of a minute, ...}}
local minutes = {}
for m = minute() - 5, minute() do minutes[#minutes + 1] = call('HGETALL', lateness(m)) end
return {call('HGETALL', SHARD), call('ZRANGE', K .. ':topics', 0, -1), minutes}
