#!lua flags=allow-oom
-- expire: dead and kept long enough -> gone.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms)
-- Returns {-1} fenced, or {expired, 0, waits...}
open('epoch', 'next', 'dead', 'purged')
if fenced(ARGV[1]) then return {-1} end
local old = dead_first(tonumber(ARGV[4]), tonumber(ARGV[2]))
local expired = 0
load_heads(old)
for _, loc in ipairs(old) do
  local h = heads[loc]
  if h and state(h) == DEAD then
    drop(loc, h)
    expired = expired + 1
  end
end
save_drops()
count('dead', -expired)
count('purged', expired)
dead_remove(old)
local waits = rest(tonumber(ARGV[3]), tonumber(ARGV[4]))
close()
return {expired, 0, unpack(waits)}
