-- The counts of a shard (stats), and how many jobs it has accepted (accepted).
-- stats: the ledger, the names of the topics, the lateness of this minute and the five before it, the pending notices.
-- KEYS  shard
-- ARGV  none
-- Returns {{name, number, ...}, {topic, ...}, {lateness of a minute, ...}, number of pending notices}
-- Uses lateness, shard.
local STATS = {
  'accepted', 'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled', 'purged', 'missing', 'tombstones_evicted_early',
}

function scripts.stats()
  shard.begin()
  local ledger, minutes = {}, {}
  for i, name in ipairs(STATS) do ledger[2 * i - 1], ledger[2 * i] = name, fields[name] end
  local now = lateness.minute()
  for minute = now - 5, now do minutes[#minutes + 1] = call('HGETALL', lateness.key(minute)) end
  return {ledger, call('ZRANGE', KEY.topics, 0, -1), minutes, call('ZCARD', KEY.outbox)}
end

-- accepted: how many jobs the shard has accepted, and by which run of its server.
-- KEYS  shard
-- ARGV  none
-- Returns {how many, run_id}

function scripts.accepted()
  shard.begin()
  return {fields.accepted, run_id()}
end
