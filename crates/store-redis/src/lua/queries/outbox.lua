-- outbox: the first dead-letter notices to be delivered by now.
-- KEYS  shard
-- ARGV  limit, about how many bytes
-- Returns {now (ms), {entry, ...}}
local STEP = 10

-- Adds the entries between two scores, and returns how many bytes are left.
local function add(entries, low, high, limit, left)
  local before = #entries
  while #entries < limit and left > 0 do
    local n = min(STEP, limit - #entries)
    local found = call('ZRANGE', KEY.outbox, low, high, 'BYSCORE', 'LIMIT', #entries - before, n)
    for _, entry in ipairs(found) do
      entries[#entries + 1] = entry
      left = left - #entry
    end
    if #found < n then break end
  end
  return left
end

function edges.outbox(args)
  tick()
  local entries, limit = {}, tonumber(args[1])
  local left = add(entries, '-inf', NOW, limit, tonumber(args[2]))
  -- Those that were stored before the clock was set back.
  add(entries, string.format('(%.0f', NOW_UP + outbox.LONGEST), '+inf', limit, left)
  return {NOW, entries}
end
