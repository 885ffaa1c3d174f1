#!lua flags=allow-oom
-- expire: dead past its retention -> gone.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms)
-- Returns {-1} fenced, or {expired, 0, waits...}
if fenced(ARGV[1]) then return {-1} end
local old = dead_first(tonumber(ARGV[4]), tonumber(ARGV[2]))
local expired = 0
load(old)
for _, loc in ipairs(old) do
  local j = get(loc)
  if j and j.st == DEAD then
    drop(loc, j)
    expired = expired + 1
  end
end
save()
count('dead', -expired)
count('purged', expired)
dead_remove(old)
write_tally()
return {expired, 0, unpack(rest(tonumber(ARGV[3]), tonumber(ARGV[4])))}
