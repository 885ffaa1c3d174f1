-- attempts: the log of a job's attempts.
-- KEYS  shard
-- ARGV  locator
-- Returns {now (ms), when the job was created (6 bytes) or '' where it is not known, log or ''}
local ATTEMPTS = union(tombs.FIELDS, logs.FIND_FIELDS)

function edges.attempts(args)
  local loc = args[1]
  shard.begin(ATTEMPTS)
  jobs.load({loc})
  local raw, created = records[loc], ''
  if raw then
    created = jobs.created(raw, states[loc])
  else
    local tomb = tombs.get(loc)
    if tomb then created = tombs.created(tomb) end
  end
  local found = logs.find({loc})
  return {NOW, created, found[loc] or ''}
end
