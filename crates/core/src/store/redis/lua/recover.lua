#!lua flags=allow-oom
-- recover: reserved and past its deadline -> ready again at once; dead by `lost` after
--   too many in a row; cancelled where that was asked for.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms), keep (ms), cap (tombstones), most lost in a row
-- Returns {-1} fenced, or {recovered, lost, waits...}
if fenced(ARGV[1]) then return {-1} end
local most = tonumber(ARGV[7])
local expired = lease_first(tonumber(ARGV[2]))
local ready, recovered, lost, later = {}, 0, {}, {}

load(expired)
for _, loc in ipairs(expired) do
  local j = get(loc)
  if j and j.st == RESERVED and run(j).deadline > NOW then
    later[#later + 1], later[#later + 2] = run(j).deadline, loc
  elseif j and j.st == RESERVED and run(j).deadline <= NOW then
    local r = run(j)
    r.lost = r.lost + 1
    if has(j, CANCEL_REQUESTED) then
      finish(loc, j, CANCELLED, r.settled)
    elseif r.lost >= most then
      move(RESERVED, DEAD)
      j.st, r.reason = DEAD, 'lost'
      put(loc, j)
      lost[#lost + 1] = loc
    else
      local topic, origin = names(j)
      append(ready, lane_of(topic, origin), ready_entry(loc, j.due))
      move(RESERVED, READY)
      j.st = READY
      put(loc, j)
      recovered = recovered + 1
    end
  end
end

ready_add(ready, 'LPUSH')
dead_add(lost)
save_tombs(tonumber(ARGV[5]), tonumber(ARGV[6]))
save()
lease_remove(expired)
-- An entry that stood too early is put right.
lease_add(later)
write_tally()
return {recovered, #lost, unpack(rest(tonumber(ARGV[3]), tonumber(ARGV[4])))}
