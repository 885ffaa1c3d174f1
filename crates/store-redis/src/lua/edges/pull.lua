-- pull: ready -> reserved, for a consumer: the first jobs of one pull lane, unless its topic is paused.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), lane id, limit (jobs), receipt bits (8 bytes), time to run (ms, 0 for
--   each job's own), time to run of jobs without their own (ms), byte budget
-- Returns what grants.lua says
-- How many entries of jobs that are gone one call skips, in addition to the entries that it takes.
local MOST_GONE = 100

function edges.pull(args)
  local lane, limit, wanted, default = args[3], tonumber(args[4]), tonumber(args[6]), tonumber(args[7])
  shard.begin(grants.FIELDS, {lane})
  local function length(timeout) return wanted > 0 and wanted or timeout > 0 and timeout or default end
  local grant, answer = grants.begin(args[1], args[2], limit, args[5], tonumber(args[8]), length)
  if not grant then return answer end

  local _, paused = topics.split({lane})
  if #paused > 0 then
    if call('ZSCORE', KEY.pulls, lane) then topics.park(paused, KEY.pulls) end
    return grants.answer(grant, 0, {})
  end

  -- A lane that lost its last job to a cancel has no name, but may still have entries.
  local n, is_all, is_stuck = 0, false, false
  for _, most in ipairs({limit, MOST_GONE}) do
    local entries = ready.range(lane, n, most + 1)
    local some = min(#entries, most)
    local passed = grants.take(grant, lane, entries, some)
    n, is_all = n + passed, passed == #entries
    is_stuck = passed < some and grant.left > 0 and grant.budget > 0
    if is_all or is_stuck or grant.left == 0 or grant.budget <= 0 then break end
  end

  grants.save(grant)
  if grant.taken > 0 then lanes.move(lane, READY, RESERVED, grant.taken) end
  ready.pop(lane, n, is_all)
  shard.close()
  return grants.answer(grant, not (is_all or is_stuck) and grants.MORE or 0, {})
end
