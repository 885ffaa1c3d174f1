-- Finds the oldest ready job at the heads of ready queues. A queue is only nearly in order and can have stale entries,
-- so its first few entries are compared with their jobs; more of them only if all of these are stale.
-- Uses ready.
local oldest = {FEW = 8, MANY = 100}
-- After about how many compared entries a call stops.
local MOST_COMPARED = 1000
local compared

function oldest.start() compared = 0 end

-- Whether a call has compared enough entries.
function oldest.is_tired() return compared >= MOST_COMPARED end

-- Returns the earliest due time of these entries (ms); nil if all are stale.
local function first_of(entries, lane)
  compared = compared + #entries
  local first
  for _, entry in ipairs(ready.counting(lane, entries)) do
    local at = read('>I6', entry, 13)
    if not first or at < first then first = at end
  end
  return first
end

-- Returns when the first ready job of a lane was due (ms), if that is before `bound` (ms); nil otherwise, or if the first
-- 100 entries are stale.
function oldest.of(lane, bound)
  local from, to = 0, oldest.FEW - 1
  while true do
    local entries, before = ready.range(lane, from, to - from + 1), {}
    for _, entry in ipairs(entries) do
      if read('>I6', entry, 13) < bound then before[#before + 1] = entry end
    end
    local first = #before > 0 and first_of(before, lane)
    if first then return first end
    -- An entry that is due later than the bound is probably not stale, so the search ends at it.
    if #before < #entries or #entries <= to - from or to + 1 >= oldest.MANY or oldest.is_tired() then return nil end
    from, to = to + 1, oldest.MANY - 1
  end
end
