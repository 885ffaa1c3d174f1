#!lua flags=allow-oom
-- promote: delayed and due -> ready. Topics take turns; none takes more than its share.
-- KEYS  shard
-- ARGV  epoch, limit (jobs), floor (ms), retention (ms)
-- Returns {-1} fenced, or {promoted, stale, waits...}
open('epoch', 'next', 'delayed', 'ready')
if fenced(ARGV[1]) then return {-1} end
local left = tonumber(ARGV[2])
local topics = due_topics(64)
local share = math.ceil(left / math.max(#topics, 1))

local ready, early, turns, promoted, stale = {}, {}, {}, 0, 0
for _, topic in ipairs(topics) do
  local take = math.min(share, left)
  if take == 0 then break end
  local locs, following = due_first(topic, take)
  local n = #locs
  load(locs)
  for _, loc in ipairs(locs) do
    local h = heads[loc]
    if not (h and state(h) == DELAYED) then
      stale = stale + 1
    elseif due(h) <= NOW then
      append(ready, lane_of(loc), ready_entry(loc, h))
      put(loc, with_state(h, READY))
      promoted = promoted + 1
    else
      -- An entry that stood too early is put right.
      append(early, topic, due(h))
      append(early, topic, loc)
      following = math.min(following or due(h), due(h))
      n, stale = n - 1, stale + 1
    end
  end
  left = left - #locs
  turns[#turns + 1] = {topic, n, following}
end

ready_add(ready, 'RPUSH')
due_add(early)
save()
for _, t in ipairs(turns) do due_pop(t[1], t[2], t[3]) end
move(DELAYED, READY, promoted)
local waits = rest(tonumber(ARGV[3]), tonumber(ARGV[4]))
close()
return {promoted, stale, unpack(waits)}
