#!lua flags=allow-oom
-- promote: delayed and due -> ready. Topics take turns; none takes more than its share.
-- KEYS  shard
-- ARGV  epoch, limit (jobs), floor (ms), retention (ms)
-- Returns {-1} fenced, or {promoted, stale, waits...}
if fenced(ARGV[1]) then return {-1} end
local left = tonumber(ARGV[2])
local topics = due_topics(64)
local share = math.ceil(left / math.max(#topics, 1))

local ready, turns, promoted, stale = {}, {}, 0, 0
for _, topic in ipairs(topics) do
  local take = math.min(share, left)
  if take == 0 then break end
  local locs, times, following = due_first(topic, take)
  load(locs)
  for i, loc in ipairs(locs) do
    local j = get(loc)
    if j and j.st == DELAYED and j.due == times[i] then
      local _, origin = names(j)
      append(ready, lane_of(topic, origin), ready_entry(loc, j.due))
      put_state(loc, j, READY)
      move(DELAYED, READY)
      promoted = promoted + 1
    else
      stale = stale + 1
    end
  end
  left = left - #locs
  turns[#turns + 1] = {topic, #locs, following}
end

ready_add(ready, 'RPUSH')
save()
for _, t in ipairs(turns) do due_pop(t[1], t[2], t[3]) end
write_tally()
return {promoted, stale, unpack(rest(tonumber(ARGV[3]), tonumber(ARGV[4])))}
