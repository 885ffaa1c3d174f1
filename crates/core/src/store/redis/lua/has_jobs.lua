-- has_jobs: whether a topic has jobs that have not ended, by the rows of its lanes. No edge;
--   changes nothing.
-- KEYS  shard
-- ARGV  topic, where to read on ('0' is the start)
-- Returns {where to go on ('0' is the end), how many jobs were met}

-- So many fields at a time, and so often.
local STEP, STEPS = 1000, 20

function edges.has_jobs(args)
  local jobs, at = 0, args[2]
  for _ = 1, STEPS do
    local scanned = call('HSCAN', KEY.shard, at, 'COUNT', STEP)
    at = scanned[1]
    local found = scanned[2]
    for i = 1, #found, 2 do
      local row = found[i + 1]
      -- Only the row of a lane has a space in its words.
      local is_lane = #found[i] == 8 and string.find(row, ' ', 11, true)
      if is_lane and topic_in(sub(row, 11)) == args[1] then jobs = jobs + read('>I6', row) end
    end
    if at == '0' or jobs > 0 then break end
  end
  return {at, jobs}
end
