-- Schedules in the consistency check: finds those that fire again but are not among the times.
-- Uses check, recurring.

-- check_schedules: a page of schedules, and those among them that do not fire because the times do not have them.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {{name, topic, 1 if it does not fire, else 0}, ...}}; {run} if the
--   scan began in another run
function scripts.check_schedules(args)
  local run, at, found = check.scan('HSCAN', KEY.recurring, unpack(args))
  if not at then return {run} end
  local all = {}
  for i = 1, #found, 2 do
    local name, stored = found[i], found[i + 1]
    local is_whole = recurring.is_whole(stored)
    local topic = is_whole and sub(stored, 28, 27 + byte(stored, 27)) or ''
    all[#all + 1] = {name, topic, is_whole and recurring.is_timeless(name, stored) and 1 or 0}
  end
  return {run, at, all}
end
