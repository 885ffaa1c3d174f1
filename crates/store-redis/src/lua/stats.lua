-- stats: the ledger, the topics and the lateness of the last five minutes. No edge.
-- KEYS  shard
-- ARGV  none
-- Returns {{name, number, ...}, topics, {lateness of a minute, ...}, deaths to be told}
local STATS = {'accepted', 'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled', 'purged', 'forgotten_early'}

function edges.stats()
  begin(STATS)
  local ledger, minutes = {}, {}
  for i, name in ipairs(STATS) do ledger[2 * i - 1], ledger[2 * i] = name, tostring(shard[name]) end
  for m = minute() - 5, minute() do minutes[#minutes + 1] = call('HGETALL', lateness(m)) end
  return {ledger, call('ZRANGE', KEY.topics, 0, -1), minutes, call('ZCARD', KEY.outbox)}
end
