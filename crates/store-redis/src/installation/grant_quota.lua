-- grant_quota: grants a caller jobs that a tenant may still submit, within its rate and its number of jobs.
-- KEYS  installation
-- ARGV  tenant, how many jobs are wanted, how many it may submit a second, how many more it may have than when its jobs
--   were counted, how long ago that was (ms), how long a slot is (ms), how many slots are kept
-- Returns {how many may be submitted, 1 if the rate limits that most, else 0}
--
-- The grants of a tenant are a hash: how many jobs in each slot of time. It expires when no slot is kept any more.
function scripts.grant_quota(args)
  tick()
  local key, width, kept = K .. ':drawn:' .. args[1], tonumber(args[6]), tonumber(args[7])
  -- Jobs that were granted just before the count may not have been submitted then.
  local slot, counted = floor(NOW / width), floor((NOW - tonumber(args[5])) / width) - 1
  local in_second, since_count, old = 0, 0, {}
  local flat = call('HGETALL', key)
  for i = 1, #flat, 2 do
    local at, n = tonumber(flat[i]), tonumber(flat[i + 1])
    -- Slots in the future were counted before the clock was set back.
    if at > slot or at + kept <= slot then
      old[#old + 1] = flat[i]
    else
      if at > slot - 1000 / width then in_second = in_second + n end
      if at >= counted then since_count = since_count + n end
    end
  end
  sliced('HDEL', key, old)
  local rate, room = max(0, tonumber(args[3]) - in_second), max(0, tonumber(args[4]) - since_count)
  local granted = math.min(tonumber(args[2]), rate, room)
  if granted > 0 then
    call('HINCRBY', key, string.format('%.0f', slot), string.format('%.0f', granted))
    call('PEXPIRE', key, width * kept)
  end
  return {granted, rate <= room and 1 or 0}
end
