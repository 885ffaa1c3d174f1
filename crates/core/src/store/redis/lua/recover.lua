#!lua flags=allow-oom
-- recover: reserved and past its deadline -> ready again at once; dead by `lost` after
-- too many in a row; cancelled where that was asked for.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms), keep (ms), cap (tombstones), most lost in a row
-- Returns {-1} fenced, or {recovered, lost, waits...}
if fenced(ARGV[1]) then return {-1} end
local keep, cap, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local expired = lease_first(tonumber(ARGV[2]))
local ready, records, recovered, lost = {}, {}, 0, 0

for _, loc in ipairs(expired) do
  local j = get(loc)
  if j and j.st == RESERVED and j.deadline <= NOW then
    j.lost = j.lost + 1
    if has(j, CANCEL_REQUESTED) then
      finish(loc, j, CANCELLED, j.settled, keep, cap)
    else
      if j.lost >= most then
        j.reason = 'lost'
        dead_add(loc)
        lost = lost + 1
      else
        local topic, origin = names(j)
        append(ready, lane_of(topic, origin), ready_entry(loc, j.due))
        recovered = recovered + 1
      end
      records[#records + 1] = {loc, j, j.lost >= most and DEAD or READY}
    end
  end
end

ready_add(ready, 'LPUSH')
for _, r in ipairs(records) do
  move(RESERVED, r[3])
  r[2].st = r[3]
  put(r[1], r[2])
end
lease_remove(expired)
write_tally()
return {recovered, lost, unpack(rest(tonumber(ARGV[3]), tonumber(ARGV[4])))}
