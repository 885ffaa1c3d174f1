-- Schedules that nothing leads to.

-- Whether the times have a schedule when it fires next.
local function has_time(name, stored)
  local at, known = recurring.next(stored), call('ZSCORE', KEY.recurring_times, name)
  return at == 0 or known and tonumber(known) <= at
end

-- audit_schedules: a page of schedules, and those among them that do not fire because the times do not have them.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {life, where to go on ('0' is the end), {{name, topic, 1 if it does not fire, else 0}, ...}}; {life} if the
--   scan began in another life
function edges.audit_schedules(args)
  local life, at, found = audit.scan('HSCAN', KEY.recurring, unpack(args))
  if not at then return {life} end
  local all = {}
  for i = 1, #found, 2 do
    local name, stored = found[i], found[i + 1]
    local topic = #stored > 27 and sub(stored, 28, 27 + byte(stored, 27)) or ''
    all[#all + 1] = {name, topic, #stored > 27 and not has_time(name, stored) and 1 or 0}
  end
  return {life, at, all}
end
