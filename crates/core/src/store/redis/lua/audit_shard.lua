-- audit_shard: the ledger, and how much there is, as of one moment. No edge; changes nothing.
-- KEYS  shard
-- ARGV  none
-- Returns {life, the counts of LEDGER as text..., jobs, dead entries, {what of the times to
--   look next is wrong, ...}}
local LEDGER = {'accepted', 'delayed', 'ready', 'reserved', 'dead', 'done', 'cancelled', 'purged', 'lease'}
local FIELDS = {'lease_at', 'dead_at', 'slot', unpack(LEDGER)}

function edges.audit_shard()
  audits.begin(FIELDS)
  local answer, wrong = {audits.life()}, {}
  for _, name in ipairs(LEDGER) do answer[#answer + 1] = string.format('%.0f', shard[name]) end
  answer[#answer + 1] = call('HLEN', KEY.pool)
  answer[#answer + 1] = call('ZCARD', KEY.dead)
  for name in pairs(audits.moments()) do wrong[#wrong + 1] = name end
  answer[#answer + 1] = wrong
  return answer
end
