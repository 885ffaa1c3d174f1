#!lua flags=allow-oom
-- promote: delayed and due -> ready. Topics take turns; none takes more than its share.
-- KEYS  shard
-- ARGV  epoch, limit (jobs), floor (ms), retention (ms)
-- Returns {-1} fenced, or {promoted, stale, waits...}
if fenced(ARGV[1]) then return {-1} end
local limit = tonumber(ARGV[2])
local topics = due_topics(64)
local share = math.ceil(limit / math.max(#topics, 1))

local ready, records, turns, stale, left = {}, {}, {}, 0, limit
for _, topic in ipairs(topics) do
  local take = math.min(share, left)
  if take == 0 then break end
  local list = due_first(topic, take)
  local n = 0
  while n < take and list[2 * n + 2] and tonumber(list[2 * n + 2]) <= NOW do
    local loc = list[2 * n + 1]
    local j = get(loc)
    n = n + 1
    if j and j.st == DELAYED and j.due == tonumber(list[2 * n]) then
      local _, origin = names(j)
      append(ready, lane_of(topic, origin), ready_entry(loc, j.due))
      j.st = READY
      records[#records + 1] = {loc, j}
    else
      stale = stale + 1
    end
  end
  left = left - n
  turns[#turns + 1] = {topic, n, tonumber(list[2 * n + 2])}
end

ready_add(ready, 'RPUSH')
for _, r in ipairs(records) do
  put(r[1], r[2])
  move(DELAYED, READY)
end
for _, t in ipairs(turns) do due_pop(t[1], t[2], t[3]) end
write_tally()
return {#records, stale, unpack(rest(tonumber(ARGV[3]), tonumber(ARGV[4])))}
