-- outbox: the first dead-letter notices to be delivered by now.
-- KEYS  shard
-- ARGV  limit, about how many bytes
-- Returns {now (ms), {entry, ...}}
local STEP = 10

function edges.outbox(args)
  tick()
  local entries, limit, left = {}, tonumber(args[1]), tonumber(args[2])
  while #entries < limit and left > 0 do
    local n = min(STEP, limit - #entries)
    local found = call('ZRANGE', KEY.outbox, '-inf', NOW, 'BYSCORE', 'LIMIT', #entries, n)
    for _, entry in ipairs(found) do
      entries[#entries + 1] = entry
      left = left - #entry
    end
    if #found < n then break end
  end
  return {NOW, entries}
end
