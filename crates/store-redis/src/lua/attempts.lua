-- attempts: the log of a job's attempts. No edge; changes nothing.
-- KEYS  shard
-- ARGV  locator
-- Returns {now (ms), when the job was created (6 bytes), or '' where it is not known, log or ''}
local ATTEMPTS = {'segment', 'attempts_segment'}

function edges.attempts(args)
  local loc = args[1]
  begin(ATTEMPTS)
  load({loc})
  local raw, created = records[loc], ''
  if raw then
    created = created_six(raw, runs[loc])
  else
    local tomb = tomb_get(loc)
    if tomb then created = sub(tomb, 16, 21) end
  end
  local found = logs.find({loc})
  return {NOW, created, found[loc] or ''}
end
