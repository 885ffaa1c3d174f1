-- outbox: deaths that are to be told by now, the first ones. No edge; changes nothing.
-- KEYS  shard
-- ARGV  limit, about how many bytes
-- Returns {now in ms, entry, ...}
local STEP = 10

function edges.outbox(args)
  tick()
  local answer, limit, left = {NOW}, tonumber(args[1]), tonumber(args[2])
  while #answer <= limit and left > 0 do
    local from, n = #answer - 1, min(STEP, limit + 1 - #answer)
    local found = call('ZRANGE', KEY.outbox, '-inf', NOW, 'BYSCORE', 'LIMIT', from, n)
    for _, entry in ipairs(found) do
      answer[#answer + 1] = entry
      left = left - #entry
    end
    if #found < n then break end
  end
  return answer
end
