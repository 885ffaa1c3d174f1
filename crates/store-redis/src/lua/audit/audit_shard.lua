-- audit_shard: the ledger, and how much there is, as of one moment.
-- KEYS  shard
-- ARGV  none
-- Returns {{the counts of LEDGER}, {how many lanes have jobs, how many topics have jobs or are paused, how
--   many are paused}, {jobs, dead entries, members of `index`, members of `topics`}, {name of a wrong time of
--   the next look, ...}}
local FIELDS = union(audit.TIMES, audit.SUMS, audit.LEDGER)

local function values(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = fields[name] end
  return list
end

function edges.audit_shard()
  audit.begin(FIELDS)
  local ledger, sums = values(audit.LEDGER), values(audit.SUMS)
  local sizes, wrong = {call('HLEN', KEY.pool)}, {}
  for i, key in ipairs({KEY.dead, KEY.index, KEY.topics}) do sizes[1 + i] = call('ZCARD', key) end
  for name in pairs(audit.wrong_times()) do wrong[#wrong + 1] = name end
  return {ledger, sums, sizes, wrong}
end
