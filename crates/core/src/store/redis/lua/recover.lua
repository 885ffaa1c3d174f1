#!lua flags=allow-oom
-- recover: reserved and past its deadline -> ready again at once; dead by `lost` after
--   too many in a row; cancelled where that was asked for.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms), keep (ms), cap (tombstones), most lost in a row
-- Returns {-1} fenced, or {recovered, lost, waits...}
open('epoch', 'next', 'segment', 'segment_at', 'segment_was', 'segment_size', 'forgotten_early',
  'ready', 'reserved', 'dead', 'cancelled')
if fenced(ARGV[1]) then return {-1} end
local most = tonumber(ARGV[7])
local expired = lease_first(tonumber(ARGV[2]))
local ready, recovered, dead, later = {}, 0, {}, {}

load(expired)
for _, loc in ipairs(expired) do
  local h = heads[loc]
  if not (h and state(h) == RESERVED) then
    -- A stale entry.
  elseif deadline(h) > NOW then
    later[#later + 1], later[#later + 2] = deadline(h), loc
  elseif has(h, CANCEL_REQUESTED) then
    finish(loc, with_loss(h, RESERVED), CANCELLED, settled(h))
  elseif lost(h) + 1 >= most then
    move(RESERVED, DEAD, 1)
    put(loc, with_reason(with_loss(h, DEAD), 'lost'))
    dead[#dead + 1] = loc
  else
    append(ready, lane_of(loc), ready_entry(loc, h))
    move(RESERVED, READY, 1)
    put(loc, with_loss(h, READY))
    recovered = recovered + 1
  end
end

ready_add(ready, 'LPUSH')
dead_add(dead)
save_tombs(tonumber(ARGV[5]), tonumber(ARGV[6]))
save()
save_drops()
lease_remove(expired)
-- An entry that stood too early is put right.
lease_add(later)
local waits = rest(tonumber(ARGV[3]), tonumber(ARGV[4]))
close()
return {recovered, #dead, unpack(waits)}
