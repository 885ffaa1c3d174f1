-- audit_shard: the ledger, and how much there is, as of one moment. No edge; changes nothing.
-- KEYS  shard
-- ARGV  none
-- Returns {life, the counts of LEDGER as text..., how many lanes and topics have jobs or are paused and
--   how many are paused as text, jobs, dead entries, members of `index` and of `topics`, {what of the times to
--   look next is wrong, ...}}
local LEDGER = {'accepted', 'delayed', 'ready', 'reserved', 'dead', 'done', 'cancelled', 'purged', 'lease', 'pauses'}
local SUMS = {'lanes', 'topics', 'paused'}
local FIELDS = {'lease_at', 'dead_at', 'tell_at', 'slot', 'lanes', 'topics', 'paused', unpack(LEDGER)}

function edges.audit_shard()
  audits.begin(FIELDS)
  local answer, wrong = {audits.life()}, {}
  for _, name in ipairs(LEDGER) do answer[#answer + 1] = string.format('%.0f', shard[name]) end
  for _, name in ipairs(SUMS) do answer[#answer + 1] = string.format('%.0f', shard[name]) end
  answer[#answer + 1] = call('HLEN', KEY.pool)
  for _, key in ipairs({KEY.dead, KEY.index, KEY.topics}) do answer[#answer + 1] = call('ZCARD', key) end
  for name in pairs(audits.moments()) do wrong[#wrong + 1] = name end
  answer[#answer + 1] = wrong
  return answer
end
